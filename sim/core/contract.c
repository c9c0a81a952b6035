#include "sim/core/contract.h"

#include "sim/base/base.h"

/* Far above any policy_ops. Before version 2 the table began with a pointer, which is above it. */
#define MAX_OPS_BYTES 65536

#define NAME(name) "struct " #name,

static const struct policy_contract own = POLICY_CONTRACT;
static const char *const struct_names[] = {POLICY_CONTRACT_STRUCTS(NAME)};

const char *contract_mismatch(const struct policy_contract *other, char *why, size_t why_size)
{
    if (other->size > MAX_OPS_BYTES || other->size < sizeof own) {
        (void)snprintf(why, why_size, "policy API version 1 or older; this xpusim has version %u",
                       (unsigned)own.version);
        return why;
    }
    if (other->version != own.version) {
        (void)snprintf(why, why_size, "policy API version %u; this xpusim has version %u",
                       (unsigned)other->version, (unsigned)own.version);
        return why;
    }
    for (size_t i = 0; i < sizeof struct_names / sizeof struct_names[0]; i++) {
        if (other->struct_bytes[i] != own.struct_bytes[i]) {
            (void)snprintf(why, why_size,
                           "other headers of policy API version %u: its %s has %u bytes, here %u",
                           (unsigned)own.version, struct_names[i], (unsigned)other->struct_bytes[i],
                           (unsigned)own.struct_bytes[i]);
            return why;
        }
    }
    if (other->size != own.size) {
        (void)snprintf(why, why_size,
                       "other headers of policy API version %u: its struct policy_ops has %zu "
                       "bytes, here %zu",
                       (unsigned)own.version, other->size, own.size);
        return why;
    }
    if (other->layout != own.layout) {
        (void)snprintf(why, why_size, "other headers of policy API version %u: layout %u, here %u",
                       (unsigned)own.version, (unsigned)other->layout, (unsigned)own.layout);
        return why;
    }
    return NULL;
}
