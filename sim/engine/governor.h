/* Frequency steps of devices (governor.c). */
#pragma once

#include "sim/engine/engine.h"

void governor_init(struct engine *e);
/* The device is in that phase from now on. */
void governor_phase(struct engine *e, uint8_t device, enum power_phase phase);
/* A period of the device is over. True: it draws other watts from now on (power_device). */
bool governor_event(struct engine *e, uint8_t device);
void governor_finish(struct engine *e);
