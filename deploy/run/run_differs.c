#include "deploy/run/run_differs.h"

#include "common/config/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct list {
    struct dp_difference *out;
    size_t count;
};

static void add(struct list *list, const char *prefix, const char *key, const char *before, const char *now)
{
    if (list->count++ >= DP_DIFFERENCES_MAX)
        return;
    struct dp_difference *to = &list->out[list->count - 1];
    (void)snprintf(to->key, sizeof to->key, "%s%s", prefix, key);
    (void)snprintf(to->before, sizeof to->before, "%.120s", before[0] ? before : "none");
    (void)snprintf(to->now, sizeof to->now, "%.120s", now[0] ? now : "none");
}

static bool is_among(const char *key, const char *const *keys)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

/* Of paths only data files can count: the others are where runs put things. */
static bool counts(const struct dp_fields *fields, const struct dp_field *field, bool same)
{
    static const char *const never[] = {"name",
                                        "id",
                                        "generation",
                                        "relative_to",
                                        "dir",
                                        "cache_bytes",
                                        "durability",
                                        "journal_bytes",
                                        "run",
                                        "first_epoch",
                                        "earlier_examples",
                                        "timeout_ms",
                                        "worker_timeout",
                                        "threads",
                                        "blas_threads",
                                        "device",
                                        "holdout_evaluated",
                                        "metrics",
                                        NULL};
    static const char *const to_its_end[] = {"epochs", "stop_at", "patience",    "patience_metric",
                                             "keep",   "workers", "consistency", "work",
                                             "pace",   "jitter",  "straggler",   NULL};
    static const char *const evaluated[] = {"test",       "test_labels",       "test_negatives",
                                            "validation", "validation_labels", "validation_negatives",
                                            NULL};
    if (is_among(field->key, never) || strcmp(field->key, "by_columns") == 0)
        return false;
    if (fields == &dp_fields_data && is_among(field->key, evaluated))
        return same;
    if (field->path)
        return fields == &dp_fields_data &&
               (strcmp(field->key, "train") == 0 || strcmp(field->key, "train_labels") == 0);
    return same || !is_among(field->key, to_its_end);
}

static void value_text(const struct dp_field *field, const void *base, char *out, size_t size)
{
    static const char *const by_size[] = {"batch", "epochs", NULL}; /* where they are 0 */
    const void *at = (const char *)base + field->offset;
    switch (field->type) {
    case DP_FIELD_U32:
        if (*(const uint32_t *)at == 0 && is_among(field->key, by_size))
            (void)snprintf(out, size, "by size");
        else
            (void)snprintf(out, size, "%" PRIu32, *(const uint32_t *)at);
        break;
    case DP_FIELD_U64:
    case DP_FIELD_BYTES:
        (void)snprintf(out, size, "%" PRIu64, *(const uint64_t *)at);
        break;
    case DP_FIELD_F64:
        (void)snprintf(out, size, "%.10g", *(const double *)at);
        break;
    case DP_FIELD_F32:
        (void)snprintf(out, size, "%.7g", (double)*(const float *)at);
        break;
    case DP_FIELD_BOOL:
        (void)snprintf(out, size, "%s", *(const bool *)at ? "true" : "false");
        break;
    case DP_FIELD_TEXT:
        (void)snprintf(out, size, "%s", (const char *)at);
        break;
    case DP_FIELD_NAME:
        (void)snprintf(out, size, "%s", field->names[*(const uint32_t *)at]);
        break;
    }
}

static void compare_one(struct list *list, const char *prefix, const struct dp_field *field,
                        const void *before, const void *now)
{
    char a[DP_PATH_MAX + 1], b[DP_PATH_MAX + 1];
    value_text(field, before, a, sizeof a);
    value_text(field, now, b, sizeof b);
    if (strcmp(a, b) != 0 && !(field->path && dp_path_same(a, b)))
        add(list, prefix, field->key, a, b);
}

static void compare(struct list *list, const struct dp_fields *fields, const void *before, const void *now,
                    bool same)
{
    for (size_t i = 0; i < fields->count; i++)
        if (counts(fields, &fields->field[i], same))
            compare_one(list, fields->prefix, &fields->field[i], before, now);
}

/* A file under another name with the same contents is the same; one of the same name need not be, which counts where it is trained. */
static void compare_file(struct list *list, const char *key, const char *before,
                         const struct dp_fingerprint *a, const char *now, const struct dp_fingerprint *b,
                         bool trained)
{
    char then_text[DP_PATH_MAX + 64], now_text[DP_PATH_MAX + 64];
    if (trained && now[0] && !b->known) /* a pipe, which is read once: into its place in the cache */
        add(list, "", key, before, "a pipe, of which nothing is known before it is read");
    if (!a->known || !b->known)
        return;
    bool listed = false;
    size_t at = 0, n = list->count < DP_DIFFERENCES_MAX ? list->count : DP_DIFFERENCES_MAX;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list->out[i].key, key) == 0) {
            listed = true;
            at = i;
        }
    if (listed && dp_fingerprint_same(a, b)) {
        memmove(&list->out[at], &list->out[at + 1], (n - at - 1) * sizeof list->out[0]);
        list->count--;
    } else if (trained && !listed && !dp_fingerprint_same(a, b)) {
        (void)snprintf(then_text, sizeof then_text, "%.70s of %" PRIu64 " bytes", before, a->bytes);
        (void)snprintf(now_text, sizeof now_text, "%.70s of %" PRIu64 " bytes%s", now, b->bytes,
                       a->bytes == b->bytes ? " with other contents" : "");
        add(list, "", key, then_text, now_text);
    }
}

/* More threads are the same training as long as a push has the same minibatches. */
static void add_threads(struct list *list, const struct dp_cluster_training *before,
                        const struct dp_cluster_training *now, bool same)
{
    char a[16], b[16];
    bool given = before->push_every != now->push_every || before->fetch_every != now->fetch_every ||
                 before->accumulate != now->accumulate; /* these are named */
    if (!same || given || dp_cluster_pushed_together(before) == dp_cluster_pushed_together(now))
        return;
    (void)snprintf(a, sizeof a, "%" PRIu32, before->threads);
    (void)snprintf(b, sizeof b, "%" PRIu32, now->threads);
    add(list, "training.", "threads", a, b);
}

size_t dp_run_differs(const struct dp_cluster *before, const struct dp_run_state *before_state,
                      const struct dp_cluster *now, const struct dp_run_state *now_state, bool same,
                      struct dp_difference out[DP_DIFFERENCES_MAX])
{
    const struct dp_optimizer_spec *a = &before->training.optimizer, *b = &now->training.optimizer;
    struct list list = {.out = out};
    compare(&list, &dp_fields_data, &before->data, &now->data, same);
    for (size_t i = 0; i < (same ? DP_RUN_FILES : DP_RUN_FILES_TRAIN); i++) {
        char key[48];
        const char *flag, *then = dp_run_state_file(&before->data, i, &flag),
                          *is = dp_run_state_file(&now->data, i, &flag);
        (void)snprintf(key, sizeof key, "data.%s", dp_run_state_file_key(i));
        compare_file(&list, key, then, &before_state->file[i], is, &now_state->file[i],
                     i < DP_RUN_FILES_TRAIN);
    }
    compare(&list, &dp_fields_top, before, now, same);
    compare(&list, &dp_fields_training, &before->training, &now->training, same);
    add_threads(&list, &before->training, &now->training, same);
    if (a->kind != b->kind)
        add(&list, "training.optimizer.", "kind", dp_cluster_optimizer_name(a), dp_cluster_optimizer_name(b));
    else
        compare(&list, &dp_fields_optimizer, a, b, same);
    return list.count;
}

size_t dp_run_differs_freely(const struct dp_cluster_training *before, const struct dp_cluster_training *now,
                             struct dp_difference out[DP_DIFFERENCES_MAX])
{
    static const char *const keys[] = {"consistency", "work", "workers", "threads"};
    struct list list = {.out = out};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        compare_one(&list, "training.", dp_fields_find(&dp_fields_training, keys[i]), before, now);
    return list.count;
}
