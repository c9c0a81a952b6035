/* Residents that a run loads to and drops from an OpenVINO device: attention compiled for a prompt
 * length, and graph blocks.
 *
 * The program prepares a graph block before the run: it compiles the models and exports them to
 * files. Loading imports these files, not from the page cache. A device with static graphs does
 * this at every switch, and it takes real time and memory. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hwmodels/engines/openvino_models.h"

#if __has_include(<openvino/c/openvino.h>) /* without its headers this file is empty */

/* ---- compiled attention ---- */

const struct compiled *attention_find(struct odevice *v, uint32_t tokens)
{
    pthread_mutex_lock(&v->mutex);
    const struct attention *a = v->attention;
    while (a != NULL && a->c.rows != tokens) {
        a = a->next;
    }
    pthread_mutex_unlock(&v->mutex);
    return a == NULL ? NULL : &a->c;
}

static int attention_make(struct odevice *v, uint32_t tokens, char *why)
{
    struct attention *a = calloc(1, sizeof *a);
    /* Without the lock, because compiling takes long, and kernels need it to find theirs. */
    int rc = a == NULL ? -ENOMEM : compile_mha(v, tokens, &a->c, why);
    if (rc != 0) {
        free(a);
        return rc;
    }
    pthread_mutex_lock(&v->mutex);
    a->next = v->attention;
    v->attention = a;
    pthread_mutex_unlock(&v->mutex);
    return 0;
}

/* Drops the oldest of this length, because one that was cancelled during compilation may have a
 * successor. */
static void attention_drop(struct odevice *v, uint32_t tokens)
{
    struct attention **oldest = NULL;
    struct attention *a = NULL;
    pthread_mutex_lock(&v->mutex);
    for (struct attention **at = &v->attention; *at != NULL; at = &(*at)->next) {
        oldest = (*at)->c.rows == tokens ? at : oldest;
    }
    if (oldest != NULL) {
        a = *oldest;
        *oldest = a->next;
    }
    pthread_mutex_unlock(&v->mutex);
    if (a != NULL) {
        compiled_free(&a->c);
        free(a);
    }
}

/* ---- graph blocks: files ---- */

enum graph_op { GRAPH_QKV, GRAPH_FFN, GRAPH_HEAD };

static const char *path_of(const struct odevice *v, uint32_t version, uint32_t layer,
                           enum graph_op op, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s/%u-%u-%d.blob", v->folder, version, layer, (int)op);
    return buf;
}

/* Drops the file from the page cache. */
static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
}

static int write_model(struct odevice *v, const struct engine_resident *r, uint32_t layer,
                       enum graph_op op, char *why)
{
    char path[384];
    struct compiled c;
    int rc = op == GRAPH_QKV   ? compile_qkv(v, layer, r->rows, &c, why)
             : op == GRAPH_FFN ? compile_ffn(v, layer, r->rows, &c, why)
                               : compile_head(v, r->rows, &c, why);
    if (rc != 0) {
        return rc;
    }
    path_of(v, r->key.b, layer, op, path, sizeof path);
    rc = ov_compiled_model_export_model(c.model, path) == OK
             ? 0
             : openvino_failure(why, "not exported");
    compiled_free(&c);
    forget(path);
    return rc;
}

static int graph_prepare(struct odevice *v, const struct engine_resident *r, char *why)
{
    if (v->folder[0] == '\0') {
        (void)snprintf(v->folder, sizeof v->folder, "%s/xpusim-graphs-XXXXXX", v->engine->scratch);
        if (mkdtemp(v->folder) == NULL) {
            v->folder[0] = '\0';
            (void)snprintf(why, ENGINE_MESSAGE_BYTES, "no folder for graphs in %.180s",
                           v->engine->scratch);
            return -EIO;
        }
    }
    int rc = 0;
    for (uint32_t l = r->layer0; l < r->layer0 + r->n_layers && rc == 0; l++) {
        rc = write_model(v, r, l, GRAPH_QKV, why);
        rc = rc == 0 ? write_model(v, r, l, GRAPH_FFN, why) : rc;
    }
    return rc == 0 && r->head ? write_model(v, r, 0, GRAPH_HEAD, why) : rc;
}

/* Reads the whole file, for free(); NULL: it cannot be read. */
static char *contents(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *data = NULL;
    size_t n = 0;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        *size = (size_t)st.st_size;
        data = malloc(*size + 1);
        ssize_t got = 1;
        while (data != NULL && n < *size && got > 0) {
            got = read(fd, data + n, *size - n);
            n += got > 0 ? (size_t)got : 0;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
        forget(path);
    }
    if (data != NULL && n < *size) {
        free(data);
        data = NULL;
    }
    return data;
}

static int read_model(const struct odevice *v, const struct engine_resident *r, uint32_t layer,
                      enum graph_op op, struct compiled *out, char *why)
{
    char path[384];
    size_t size = 0;
    OWNED char *data = contents(path_of(v, r->key.b, layer, op, path, sizeof path), &size);
    *out = (struct compiled){.rows = r->rows};
    int rc = data == NULL ||
                     ov_core_import_model(v->engine->openvino.core, data, size,
                                          openvino_name(v->name), &out->model) != OK ||
                     ov_compiled_model_create_infer_request(out->model, &out->request) != OK
                 ? openvino_failure(why, "graph not imported")
                 : 0;
    /* An imported model has its own weights, so the file's bytes can be freed. */
    out->blob = NULL;
    return rc;
}

/* ---- graph blocks: in memory ---- */

static void graph_free(struct graph_block *g)
{
    for (uint32_t i = 0; i < g->of.n_layers && g->qkv != NULL && g->ffn != NULL; i++) {
        compiled_free(&g->qkv[i]);
        compiled_free(&g->ffn[i]);
    }
    compiled_free(&g->head);
    free(g->qkv);
    free(g->ffn);
    free(g);
}

static int graph_make(struct odevice *v, const struct engine_resident *r, char *why)
{
    struct graph_block *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return -ENOMEM;
    }
    g->of = *r;
    g->qkv = calloc(r->n_layers, sizeof *g->qkv);
    g->ffn = calloc(r->n_layers, sizeof *g->ffn);
    int rc = g->qkv == NULL || g->ffn == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; i < r->n_layers && rc == 0; i++) {
        rc = read_model(v, r, r->layer0 + i, GRAPH_QKV, &g->qkv[i], why);
        rc = rc == 0 ? read_model(v, r, r->layer0 + i, GRAPH_FFN, &g->ffn[i], why) : rc;
    }
    rc = rc == 0 && r->head ? read_model(v, r, 0, GRAPH_HEAD, &g->head, why) : rc;
    if (rc != 0) {
        graph_free(g);
        return rc;
    }
    pthread_mutex_lock(&v->mutex);
    g->next = v->graphs;
    v->graphs = g;
    pthread_mutex_unlock(&v->mutex);
    return 0;
}

static void graph_drop(struct odevice *v, struct resident_key key)
{
    pthread_mutex_lock(&v->mutex);
    struct graph_block **at = &v->graphs;
    while (*at != NULL && ((*at)->of.key.a != key.a || (*at)->of.key.b != key.b)) {
        at = &(*at)->next;
    }
    struct graph_block *g = *at;
    *at = g != NULL ? g->next : NULL;
    pthread_mutex_unlock(&v->mutex);
    if (g != NULL) {
        graph_free(g);
    }
}

const struct compiled *graph_find(struct odevice *v, const struct engine_kernel *k)
{
    const struct compiled *found = NULL;
    pthread_mutex_lock(&v->mutex);
    for (const struct graph_block *g = v->graphs; g != NULL && found == NULL; g = g->next) {
        if (g->of.key.b != k->graph || g->of.rows != k->padded_rows) {
            continue;
        }
        if (k->op == OP_HEAD) {
            found = g->of.head ? &g->head : NULL;
        } else if (k->layer - g->of.layer0 < g->of.n_layers) {
            found = &(k->op == OP_QKV ? g->qkv : g->ffn)[k->layer - g->of.layer0];
        }
    }
    pthread_mutex_unlock(&v->mutex);
    return found;
}

/* ---- both ---- */

static void remove_files(const struct odevice *v, const struct engine_resident *r)
{
    char path[384];
    for (uint32_t l = r->layer0; l < r->layer0 + r->n_layers; l++) {
        (void)unlink(path_of(v, r->key.b, l, GRAPH_QKV, path, sizeof path));
        (void)unlink(path_of(v, r->key.b, l, GRAPH_FFN, path, sizeof path));
    }
    (void)unlink(path_of(v, r->key.b, 0, GRAPH_HEAD, path, sizeof path));
}

int openvino_resident(void *device, const struct engine_resident *r, enum engine_step step,
                      char *why)
{
    struct odevice *v = device;
    if (r->key.kind == RESIDENT_COMPILED_ATTENTION) {
        if (step == ENGINE_STEP_MAKE) {
            return attention_make(v, r->key.a, why);
        }
        attention_drop(v, r->key.a);
        return 0;
    }
    if (step == ENGINE_STEP_DROP) {
        graph_drop(v, r->key);
        return 0;
    }
    if (step == ENGINE_STEP_MAKE) {
        return graph_make(v, r, why);
    }
    v->versions = r->key.b > v->versions ? r->key.b : v->versions;
    return graph_prepare(v, r, why);
}

void residents_close(struct odevice *v)
{
    while (v->attention != NULL) {
        OWNED struct attention *a = v->attention;
        v->attention = a->next;
        compiled_free(&a->c);
    }
    while (v->graphs != NULL) {
        struct graph_block *g = v->graphs;
        v->graphs = g->next;
        graph_free(g);
    }
    struct engine_resident all = {.n_layers = v->engine->llm->n_layers};
    for (all.key.b = 1; v->folder[0] != '\0' && all.key.b <= v->versions; all.key.b++) {
        remove_files(v, &all);
    }
    if (v->folder[0] != '\0') {
        (void)rmdir(v->folder);
    }
}

#endif
