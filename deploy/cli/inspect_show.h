/* Inspect show: views as text for people, or as one JSON object for scripts. */
#ifndef DP_CLI_INSPECT_SHOW_H
#define DP_CLI_INSPECT_SHOW_H

#include "server/inspect/inspect_view.h"

/* What is asked for besides the views. */
struct dp_show {
    const struct dp_inspect_view *views;
    size_t count;
    bool verify, digest, all;       /* all: which push numbers are used (of text; JSON has it) */
    const struct dp_error *refused; /* why the command fails after all; DP_OK: it does not */
    /* digest: of all views together; asserted to be there then. */
    const struct dp_digest_table *sum;
    size_t sums;
};

void dp_show_text(const struct dp_show *show);
enum dp_status dp_show_json(const struct dp_show *show, struct dp_error *err);

/* The same object where there is nothing to show: no stores, and why. */
void dp_show_refusal_json(const struct dp_error *refused);

/* Rows of one table, for people or as JSON: those of `keys`, or, without any, the first `limit` in stored order. */
struct dp_show_rows {
    const char *const *directories;
    size_t count;
    const char *table;
    const uint64_t *keys; /* users' keys */
    size_t key_count;
    uint64_t limit; /* rows at most */
    bool json;
};
enum dp_status dp_show_rows(const struct dp_show_rows *rows, struct dp_error *err);

/* Whether it is a checkpoint, or a directory that has one. */
bool dp_show_has_checkpoints(const char *path);
/* Its checkpoints as a table, or as one JSON object. verify: every byte is read. DP_CORRUPT, DP_DATA: one is
 * damaged; all were shown before. */
enum dp_status dp_show_checkpoints(const char *path, bool verify, bool json, struct dp_error *err);

/* "adamw" is adam with decay, "momentum" sgd with it. */
const char *dp_show_optimizer_name(const struct dp_optimizer_spec *optimizer);

#endif
