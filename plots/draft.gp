# Time of one verification against the tokens drafted.
xlabel_text = 'draft length (tokens)'
title1 = 'verification time (ms)'
load lines
