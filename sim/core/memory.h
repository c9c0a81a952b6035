/* Memory for other things than KV: residents (compiled kernels, graph blocks), and weights of
 * several models. */
#pragma once

#include "sim/core/core.h"

/* Residents (resident.c). */
struct resident *resident_find(struct core *c, struct resident_key key);
/* The next one, in any order: *at is 0 at the begin; NULL ends. */
struct resident *resident_next(const struct core *c, uint32_t *at);
int core_compile(struct core *c, struct resident_key key);
int core_load(struct core *c, struct resident_key key, double bytes);
int core_map(struct core *c, struct resident_key key, double bytes);
int core_graph(struct core *c, uint8_t version, struct graph_shape shape);
int core_resident_evict(struct core *c, struct resident_key key);
/* A pending resident; NULL: KV has no room to give. For weights, whose life is in weights.c. */
struct resident *resident_add(struct core *c, struct resident_key key, double bytes);
void resident_remove(struct core *c, struct resident *r);
/* Bytes of the largest model's weights. Others are loaded where KV leaves room. */
double resident_weight_bytes(const struct core *c);
/* Units that KV lends when residents have so many bytes. */
uint64_t resident_lent_for(const struct core *c, double bytes);

/* Weights of several models (weights.c). */
void weights_init(struct core *c);                 /* after the policy's init */
void weights_left(struct core *c, uint32_t model); /* a request that was not held */
void weights_loaded(struct core *c, const struct resident *r);
/* Loads what the held ask for, and notifies the policy of requests that need not wait. */
void weights_let_in(struct core *c);
/* The first request to refuse while some have no room next to weights in use; NULL: all have. */
struct full_request *weights_in_the_way(const struct core *c);
/* Evicts the weights that have been idle for longest; false: none are. */
bool weights_give_way(struct core *c);
double weights_idle_bytes(const struct core *c);
/* Units that KV lends at least while a model is served. */
uint64_t weights_least_lent(const struct core *c, uint32_t model);
/* Weights or the graphs that hold them, residents, and KV held (cold included). */
double core_memory_bytes(const struct core *c);
void core_memory_note(struct core *c); /* for the run's memory peak */
/* Other programs hold so much from now on: KV gives way to them, and gets it back. */
void core_memory_taken(struct core *c, double bytes);
double core_memory_free_bytes(const struct core *c);
