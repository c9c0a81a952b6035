/* Memory other than KV: residents (compiled kernels, graph blocks), weights of several models. */
#pragma once

#include "sim/core/core.h"

/* Residents (resident.c). */
struct resident *resident_find(struct core *c, struct resident_key key);
/* Iterates over residents in any order. Start with *at = 0; NULL ends. */
struct resident *resident_next(const struct core *c, uint32_t *at);
int core_compile(struct core *c, struct resident_key key);
int core_load(struct core *c, struct resident_key key, double bytes);
int core_map(struct core *c, struct resident_key key, double bytes);
int core_graph(struct core *c, uint8_t version, struct graph_shape shape);
int core_resident_evict(struct core *c, struct resident_key key);
/* Adds a pending resident; NULL if KV cannot lend that memory. weights.c adds weights by it. */
struct resident *resident_add(struct core *c, struct resident_key key, double bytes);
void resident_remove(struct core *c, struct resident *r);
/* Bytes of the largest model's weights, all copies. Further ones are loaded if KV leaves room. */
double resident_weight_bytes(const struct core *c);
/* Units that KV lends if residents have that many bytes. */
uint64_t resident_lent_for(const struct core *c, double bytes);

/* Weights of several models (weights.c). */
void weights_init(struct core *c); /* call it after the policy's init */
/* A request of that model left, unless it was held. */
void weights_left(struct core *c, uint32_t model);
void weights_loaded(struct core *c, const struct resident *r);
/* Loads weights for held requests, and notifies the policy of those that need not wait any more. */
void weights_let_in(struct core *c);
/* The first request to shed if not all have room next to the weights in use; NULL: all have. */
struct full_request *weights_in_the_way(const struct core *c);
/* Evicts the weights that have been idle for longest; false if none are idle. */
bool weights_give_way(struct core *c);
double weights_idle_bytes(const struct core *c);
/* The fewest units that KV lends while a request of the model is in service. */
uint64_t weights_least_lent(const struct core *c, uint32_t model);
/* Weights (or the graphs that contain them), residents, and held KV (cold included). */
double core_memory_bytes(const struct core *c);
void core_memory_note(struct core *c); /* updates the run's memory peak */
/* Sets the memory that other programs hold from now on. KV lends it, or gets it back. */
void core_memory_taken(struct core *c, double bytes);
double core_memory_free_bytes(const struct core *c);
