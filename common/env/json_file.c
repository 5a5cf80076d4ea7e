#include "common/env/json_file.h"

#include "common/env/atomic_file.h"

enum dp_status dp_json_file_write(const char *path, json_t **root, unsigned digits, struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    enum dp_status st = *root ? dp_atomic_file_open(path, &file, err)
                              : dp_fail(err, DP_NOMEM, "no memory, or no text, for '%s'", path);
    if (st == DP_OK && (json_dumpf(*root, file.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(digits)) != 0 ||
                        fputc('\n', file.stream) == EOF))
        st = dp_fail(err, DP_IO, "cannot write '%s'", path);
    if (st == DP_OK)
        st = dp_atomic_file_commit(&file, err);
    dp_atomic_file_drop(&file);
    json_decref(*root);
    *root = NULL;
    return st;
}
