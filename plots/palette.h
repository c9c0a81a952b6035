/* One policy, one colour and marker, from the first figure of a page to the last.
 *
 * A name has a slot, a number from 0 on that plots/style.gp makes a line type of: its colour is
 * slot % 8, and each further 8 are lighter and have another marker and dashes. Policies and devices
 * that are common have a slot of their own, so that figures drawn one by one agree as well; a
 * policy with other parameters ("openvino-cb:variant=vllm") has the colour of its name; others get
 * what is free, in the order in which they are asked for. */
#pragma once

#define PALETTE_COLOURS 8u
#define PALETTE_SLOTS 64u

/* The same for the same name as long as the process lives. */
unsigned palette_slot(const char *name);
