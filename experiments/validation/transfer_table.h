/* How far off machines made from a sibling are, pair by pair, for people. */
#ifndef EXPERIMENTS_VALIDATION_TRANSFER_TABLE_H
#define EXPERIMENTS_VALIDATION_TRANSFER_TABLE_H

#include <stdio.h>

#include "hwmodels/conformal.h"

void transfer_table_print(const struct conformal *c, FILE *out);

#endif
