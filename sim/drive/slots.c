/* KV of sessions: slots of cells, and their offsets in the swap file. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "sim/drive/drive_impl.h"

#define MAX_SLOTS 512    /* sessions with KV at the same time */
#define SLOT_UNIT 64     /* tokens */
#define IO_BYTES 1048576 /* per write or read; aligned for O_DIRECT */
#define PAGE 4096

static void *map_lazily(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Slots are whole pages, so that one can be released or swapped without its neighbours. */
static uint32_t slot_unit(uint32_t kv_dim)
{
    uint32_t unit = SLOT_UNIT;
    while (unit * kv_dim * sizeof(uint16_t) % PAGE != 0) {
        unit *= 2;
    }
    SIM_ASSERT(unit == SLOT_UNIT || unit <= PAGE / 2); /* a cell's number has 2 bytes */
    return unit;
}

static uint32_t longest_sequence(const struct trace *t)
{
    uint32_t most = 1;
    for (size_t i = 0; i < t->n; i++) {
        uint32_t n = t->rows[i].input_tokens + t->rows[i].output_tokens;
        most = n > most ? n : most;
    }
    return most;
}

int slots_open(struct drive *d)
{
    struct real_kv *kv = &d->kv;
    const struct trace *t = d->core.setup->trace;
    SIM_ASSERT(kv->file < 0 && kv->holders == NULL && kv->n_slots == 0);
    kv->view.kv_dim = d->llm->kv_heads * d->llm->head_dim;
    uint32_t unit = slot_unit(kv->view.kv_dim);
    kv->slot_tokens = (longest_sequence(t) + unit - 1) / unit * unit;
    for (size_t i = 0; i < t->n && kv->n_slots < MAX_SLOTS; i++) {
        /* One per session. A turn that never arrives leaves its own behind. */
        bool may_leave = t->graph != NULL && t->graph->ends_with[i] != TRACE_NO_ROW;
        kv->n_slots += t->rows[i].turn == 0 || may_leave;
    }
    kv->n_slots = kv->n_slots == 0 ? 1 : kv->n_slots;
    kv->view.n_cells = (size_t)kv->n_slots * kv->slot_tokens + 1;
    SIM_ASSERT(kv->n_slots <= MAX_SLOTS && kv->slot_tokens >= longest_sequence(t));
    kv->bytes = kv->view.n_cells * kv->view.kv_dim * sizeof(uint16_t);
    kv->k = arena_alloc(&d->core.arena, d->llm->n_layers * sizeof *kv->k);
    kv->v = arena_alloc(&d->core.arena, d->llm->n_layers * sizeof *kv->v);
    kv->holders = arena_alloc(&d->core.arena, kv->n_slots * sizeof *kv->holders);
    for (uint32_t l = 0; l < d->llm->n_layers; l++) {
        kv->k[l] = map_lazily(kv->bytes);
        kv->v[l] = map_lazily(kv->bytes);
        if (kv->k[l] == NULL || kv->v[l] == NULL) {
            return core_fail(&d->core, -ENOMEM, "no memory for %u KV slots of %u tokens",
                             kv->n_slots, kv->slot_tokens);
        }
    }
    kv->view.k = kv->k;
    kv->view.v = kv->v;
    kv->file = d->host->swap_open(d->scratch);
    return kv->file >= 0 ? 0
                         : core_fail(&d->core, kv->file, "no swap file in %s: %s", d->scratch,
                                     strerror(-kv->file));
}

uint32_t slot_owners(const struct drive *d, uint32_t slot)
{
    uint32_t n = 0;
    for (const struct full_request *f = d->core.live_head; f != NULL; f = f->next_live) {
        const struct real_request *q = f->exec;
        n += q != NULL && f->alive && q->slot == slot;
    }
    for (size_t i = 0; i < d->core.setup->trace->n; i++) {
        const struct real_turn *t = &d->turns[i];
        n += t->tokens != NULL && t->slot == slot && d->requests[i].tokens == NULL;
    }
    return n;
}

uint32_t slot_take(struct drive *d)
{
    for (uint32_t i = 0; i < d->kv.n_slots; i++) {
        if (d->kv.holders[i] == 0) {
            SIM_ASSERT(slot_owners(d, i) == 0);
            d->kv.holders[i] = 1;
            return i;
        }
    }
    core_fail(&d->core, -ENOMEM, "more than %u sessions at once: a real run keeps KV for no more",
              d->kv.n_slots);
    return 0;
}

static size_t slot_bytes(const struct drive *d)
{
    size_t bytes = (size_t)d->kv.slot_tokens * d->kv.view.kv_dim * sizeof(uint16_t);
    SIM_ASSERT(bytes > 0 && bytes % PAGE == 0); /* slots do not share pages */
    return bytes;
}

void slot_release(struct drive *d, uint32_t slot)
{
    size_t bytes = slot_bytes(d);
    SIM_ASSERT(drive_on_host(d) && slot < d->kv.n_slots && slot_owners(d, slot) == 1);
    for (uint32_t l = 0; l < d->llm->n_layers; l++) {
        (void)madvise((char *)d->kv.k[l] + slot * bytes, bytes, MADV_DONTNEED);
        (void)madvise((char *)d->kv.v[l] + slot * bytes, bytes, MADV_DONTNEED);
    }
}

/* Copies one K or V part of a slot, through an aligned buffer. */
static int transfer(const struct drive *d, off_t at, char *data, size_t bytes, char *buffer,
                    bool in)
{
    SIM_ASSERT(at % PAGE == 0 && (uintptr_t)buffer % PAGE == 0); /* for O_DIRECT */
    for (size_t done = 0; done < bytes; done += IO_BYTES) {
        size_t n = bytes - done < IO_BYTES ? bytes - done : IO_BYTES;
        size_t whole = (n + PAGE - 1) / PAGE * PAGE;
        off_t from = at + (off_t)done;
        if (!in) {
            memcpy(buffer, data + done, n);
        }
        ssize_t got = in ? d->host->pread(d->kv.file, buffer, whole, from)
                         : d->host->pwrite(d->kv.file, buffer, whole, from);
        if (got != (ssize_t)whole) {
            return got < 0 ? -errno : -EIO;
        }
        if (in) {
            memcpy(data + done, buffer, n);
        }
    }
    return 0;
}

/* The next turn may arrive while KV of its session is being written to the file. Then the copy is
 * not used (service_done), so kernels may change cells that are still read here. */
int slot_swap(struct drive *d, uint32_t slot, uint32_t tokens, bool in)
{
    size_t place = slot_bytes(d);
    size_t bytes = (size_t)tokens * d->kv.view.kv_dim * sizeof(uint16_t);
    size_t room = bytes < IO_BYTES ? (bytes + PAGE - 1) / PAGE * PAGE : IO_BYTES;
    /* On the loader. Each slot has its own offset in the file. Whole pages are written. */
    SIM_ASSERT(pthread_equal(d->host->thread_self(), d->loader.thread) != 0);
    SIM_ASSERT(slot < d->kv.n_slots && tokens > 0 && (bytes + PAGE - 1) / PAGE * PAGE <= place);
    void *buffer = NULL;
    if (posix_memalign(&buffer, PAGE, room) != 0) {
        return -ENOMEM;
    }
    memset(buffer, 0, room);
    int rc = 0;
    for (uint32_t l = 0; l < 2 * d->llm->n_layers && rc == 0; l++) {
        uint16_t *base = l % 2 == 0 ? d->kv.k[l / 2] : d->kv.v[l / 2];
        off_t at = (off_t)(((size_t)slot * 2 * d->llm->n_layers + l) * place);
        rc = transfer(d, at, (char *)base + slot * place, bytes, buffer, in);
    }
    if (rc == 0 && !in && d->host->fdatasync(d->kv.file) != 0) {
        rc = -errno;
    }
    free(buffer);
    return rc;
}

void slots_close(struct drive *d)
{
    for (uint32_t l = 0; d->kv.k != NULL && l < d->llm->n_layers; l++) {
        if (d->kv.k[l] != NULL) {
            (void)munmap(d->kv.k[l], d->kv.bytes);
        }
        if (d->kv.v[l] != NULL) {
            (void)munmap(d->kv.v[l], d->kv.bytes);
        }
    }
    if (d->kv.file >= 0) {
        (void)close(d->kv.file);
    }
}
