/* The errors of `validate --leave-machine-out` as a table, by device, part and phase. */
#pragma once

#include "experiments/shell/document.h"
#include "experiments/validation/leave_machine.h"

void leave_machine_document(const struct leave_rows *r, uint32_t measured, struct document *d);
