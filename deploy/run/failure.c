#include "deploy/run/failure.h"

#include "common/config/cluster.h"
#include "common/env/json_file.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

/* A path that is too long is cut, and names no file. */
struct failure_path {
    char text[DP_PATH_MAX + 32];
};

static struct failure_path path_of(const char *directory)
{
    struct failure_path path;
    (void)snprintf(path.text, sizeof path.text, "%s/failure.json", directory);
    return path;
}

void dp_failure_clear(const char *directory)
{
    (void)unlink(path_of(directory).text);
}

static json_t *pack(const struct dp_failure *failure)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "error", failure->error, "trained", (int)failure->trained,
                     "diverged", (int)failure->diverged, "refused", (int)failure->refused);
}

void dp_failure_json(const struct dp_failure *failure, int code, const char *directory, FILE *file)
{
    json_t *root = json_pack("{s:b, s:i, s:s}", "finished", 0, "exit", code, "dir", directory),
           *rest = pack(failure);
    (void)json_object_update(root, rest);
    (void)json_dumpf(root, file, 0);
    (void)fputc('\n', file);
    (void)fflush(file);
    json_decref(rest);
    json_decref(root);
}

enum dp_status dp_failure_write(const char *directory, const struct dp_failure *failure, struct dp_error *err)
{
    json_t *root = pack(failure);
    return dp_json_file_write(path_of(directory).text, &root, 10, err);
}

bool dp_failure_read(const char *directory, struct dp_failure *out)
{
    json_t *root = json_load_file(path_of(directory).text, 0, NULL);
    const char *error = json_string_value(json_object_get(root, "error"));
    *out = (struct dp_failure){.trained = json_is_true(json_object_get(root, "trained")),
                               .diverged = json_is_true(json_object_get(root, "diverged")),
                               .refused = json_is_true(json_object_get(root, "refused"))};
    (void)snprintf(out->error, sizeof out->error, "%s", error ? error : "");
    json_decref(root);
    return out->error[0] != '\0';
}
