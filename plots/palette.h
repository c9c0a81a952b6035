/* Each policy has one colour and marker in all figures of a page.
 *
 * A name has a slot, a number from 0, which plots/style.gp maps to a line type. Its colour is slot
 * % 8; each further 8 slots are lighter and have other markers and dashes. Common policies and
 * devices have fixed slots, so that separate figures agree as well. A policy with parameters
 * ("openvino-cb:variant=vllm") has the colour of its name. Other names get free slots in the order
 * of requests. */
#pragma once

#define PALETTE_COLOURS 8u
#define PALETTE_SLOTS 64u

/* The slot of a name. Constant as long as the process lives. */
unsigned palette_slot(const char *name);
/* Gives the new name the slot of the old one. Both are copied. */
void palette_rename(const char *from, const char *to);
