# Time of one verification against the tokens drafted.
load lines
