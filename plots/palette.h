/* One policy has one colour and marker, from the first figure of a page to the last.
 *
 * A name has a slot, a number from 0 on, which plots/style.gp makes a line type of. Its colour is
 * slot % 8; each further 8 are lighter and have another marker and dashes. Common policies and
 * devices have fixed slots, so that figures drawn one by one agree as well. A policy with other
 * parameters ("openvino-cb:variant=vllm") has the colour of its name. Other names get free slots in
 * the order of requests. */
#pragma once

#define PALETTE_COLOURS 8u
#define PALETTE_SLOTS 64u

/* Equal for equal names as long as the process lives. */
unsigned palette_slot(const char *name);
/* The new name has the slot of the old one from now on. Both are copied. */
void palette_rename(const char *from, const char *to);
