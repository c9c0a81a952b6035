/* Whether a policy was compiled with the headers of this program. */
#pragma once

#include <stddef.h>

#include "sim/api/policy.h"

/* Says in `why` what another contract differs in; NULL when it is this one, else `why`. Reads only
 * `size` unless that is of a policy_ops that begins with a contract, so anything may be asked about
 * that a policy of any version returned. */
const char *contract_mismatch(const struct policy_contract *other, char *why, size_t why_size);
