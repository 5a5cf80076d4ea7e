#include "deploy/compare/data_files.h"

#include "common/base/json.h"
#include "server/checkpoint/checksum.h"

#include <string.h>

static enum dp_status add(json_t *files, const char *flag, const char *path, struct dp_error *err)
{
    char text[DP_CHECKSUM_TEXT];
    uint64_t bytes = 0;
    enum dp_status st = dp_checksum_file(path, NULL, &bytes, text, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", flag);
    json_t *one = json_pack("{s:s, s:s, s:s}", "flag", flag, "path", path, "blake2b", text);
    dp_json_set_u64(one, "bytes", bytes);
    return json_array_append_new(files, one) == 0 ? DP_OK
                                                  : dp_fail(err, DP_NOMEM, "no memory for the report");
}

enum dp_status dp_data_files(const struct dp_compare_plan *plan, json_t **out, struct dp_error *err)
{
    static const char *const flags[] = {"--train", "--train-labels", "--test", "--test-labels",
                                        "--test-negatives"};
    enum dp_status st = DP_OK;
    *out = json_array();
    for (size_t i = 0; st == DP_OK && i < sizeof flags / sizeof flags[0]; i++) {
        const char *path = dp_compare_plan_flag(plan, flags[i]);
        if (path)
            st = add(*out, flags[i], path, err);
    }
    if (st == DP_OK)
        return DP_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}

static const json_t *find(const json_t *files, const char *flag)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *own = json_string_value(json_object_get(json_array_get(files, i), "flag"));
        if (own && strcmp(own, flag) == 0)
            return json_array_get(files, i);
    }
    return NULL;
}

enum dp_status dp_data_files_check(const json_t *files, const json_t *earlier, struct dp_error *err)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *one = json_array_get(files, i);
        const char *flag = json_string_value(json_object_get(one, "flag"));
        const char *here = json_string_value(json_object_get(one, "blake2b"));
        const char *there = json_string_value(json_object_get(find(earlier, flag), "blake2b"));
        if (there && strcmp(here, there) != 0)
            return dp_fail(err, DP_ARGUMENT,
                           "%s: '%.200s' has other bytes than the report's file: BLAKE2b %s, not %.32s", flag,
                           json_string_value(json_object_get(one, "path")), here, there);
    }
    return DP_OK;
}
