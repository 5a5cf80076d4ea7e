/* Fields: every key of a cluster file, as a table: its name, where it lies in the struct, its type and range.
 * Reading, writing and checking all go over these tables, so that no key is known to one of them only.
 * Thread    Constant.                                                                                 */
#ifndef DP_CONFIG_FIELDS_H
#define DP_CONFIG_FIELDS_H

#include "common/config/cluster.h"

enum dp_field_type {
    DP_FIELD_U32,
    DP_FIELD_U64,
    DP_FIELD_BYTES, /* u64; "4GiB" too */
    DP_FIELD_F64,
    DP_FIELD_F32,
    DP_FIELD_BOOL,
    DP_FIELD_TEXT, /* max: bytes without the final 0; min 1: not empty */
    DP_FIELD_NAME, /* an enum (from 0, ascending by 1) by one of `names` */
};

struct dp_field {
    const char *key;
    enum dp_field_type type;
    size_t offset;
    bool required;
    bool obsolete;     /* of earlier versions' files: read and checked, not written; it decides nothing */
    bool path;         /* TEXT: of a file or directory; empty: none */
    bool list;         /* TEXT: an array of strings too, which become one with commas between */
    uint64_t min, max; /* numbers and lengths */
    double min_f64, max_f64;  /* F64, F32 */
    const char *const *names; /* NAME: [max + 1] */
};

struct dp_fields {
    const char *prefix; /* "training." */
    const struct dp_field *field;
    size_t count;
    const char *const *group; /* other keys, each a group or list of its own */
    size_t group_count;
};

extern const struct dp_fields dp_fields_top, dp_fields_server, dp_fields_counted, dp_fields_checkpoint,
    dp_fields_data, dp_fields_training, dp_fields_optimizer;

/* DP_ARGUMENT with name and range unless the value in `base` is within the field's range. what: NULL, or how
 * the message names it instead of by its key. */
enum dp_status dp_field_check(const struct dp_fields *fields, const struct dp_field *field, const void *base,
                              const char *what, struct dp_error *err);
#define DP_SETTING_NAME_BYTES 96
/* "--epochs" where `names` (or NULL) has a flag for the key, else "'training.epochs'". Returns out. */
const char *dp_setting_name(const struct dp_setting_names *names, const char *key,
                            char out[DP_SETTING_NAME_BYTES]);
/* All of them. */
enum dp_status dp_fields_check(const struct dp_fields *fields, const void *base,
                               const struct dp_setting_names *names, struct dp_error *err);
/* NULL: no such key. */
const struct dp_field *dp_fields_find(const struct dp_fields *fields, const char *key);

/* Sets the field from a person's text, with its checks. what: as dp_field_check. */
enum dp_status dp_field_set(const struct dp_fields *fields, const struct dp_field *field, void *base,
                            const char *text, const char *what, struct dp_error *err);

#endif
