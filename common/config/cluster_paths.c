#include "common/config/cluster_paths.h"

#include "common/config/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum dp_status change_path(const struct dp_fields *fields, const struct dp_field *field,
                                   const char *directory, char *path, struct dp_error *err);

static enum dp_status resolve(const struct dp_fields *fields, const struct dp_field *field,
                              const char *directory, char *path, struct dp_error *err)
{
    char whole[2 * DP_PATH_MAX + 8];
    if (path[0] == '/')
        return DP_OK;
    int len = snprintf(whole, sizeof whole, "%s/%s", directory, path);
    if (len > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "'%s%s', relative to the file's directory, is longer than %d bytes",
                       fields->prefix, field->key, DP_PATH_MAX);
    memcpy(path, whole, (size_t)len + 1);
    return DP_OK;
}

/* Such a path leads somewhere else as soon as the directory is moved. */
static bool climbs(const char *path)
{
    for (const char *at = path; *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");
        if (len == 2 && memcmp(at, "..", 2) == 0)
            return true;
        at += len;
    }
    return false;
}

static enum dp_status shorten(const struct dp_fields *fields, const struct dp_field *field,
                              const char *directory, char *path, struct dp_error *err)
{
    size_t len = strlen(directory);
    const char *below = path + len;
    if (strncmp(path, directory, len) == 0 && *below == '/') {
        below += strspn(below, "/");
        if (*below && !climbs(below)) {
            memmove(path, below, strlen(below) + 1);
            return DP_OK;
        }
    }
    return path[0] == '/' ? DP_OK
                          : dp_fail(err, DP_ARGUMENT,
                                    "'%s%s' is \"%s\", neither absolute nor below the cluster file's "
                                    "directory '%s'",
                                    fields->prefix, field->key, path, directory);
}

static enum dp_status change_fields(const struct dp_fields *fields, void *base, const char *directory,
                                    change_path *change, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < fields->count; i++) {
        char *path = (char *)base + fields->field[i].offset;
        if (fields->field[i].path && path[0])
            st = change(fields, &fields->field[i], directory, path, err);
    }
    return st;
}

static enum dp_status change_all(struct dp_cluster *cluster, const char *file, change_path *change,
                                 struct dp_error *err)
{
    char directory[DP_PATH_MAX + 1] = ".";
    const char *slash = strrchr(file, '/');
    size_t len = slash ? (size_t)(slash - file) : 1;
    if (len > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "the path of the file is longer than %d bytes", DP_PATH_MAX);
    if (slash) {
        memcpy(directory, file, len);
        directory[len] = '\0';
    }
    enum dp_status st = change_fields(&dp_fields_top, cluster, directory, change, err);
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++)
        st = change_fields(&dp_fields_server, &cluster->server[i], directory, change, err);
    if (st == DP_OK)
        st = change_fields(&dp_fields_counted, &cluster->counted, directory, change, err);
    if (st == DP_OK)
        st = change_fields(&dp_fields_checkpoint, &cluster->checkpoint, directory, change, err);
    if (st == DP_OK)
        st = change_fields(&dp_fields_data, &cluster->data, directory, change, err);
    return st == DP_OK ? change_fields(&dp_fields_training, &cluster->training, directory, change, err) : st;
}

enum dp_status dp_cluster_paths_resolve(struct dp_cluster *cluster, const char *file, struct dp_error *err)
{
    return change_all(cluster, file, resolve, err);
}

enum dp_status dp_cluster_paths_shorten(const struct dp_cluster *cluster, const char *file,
                                        struct dp_cluster **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    struct dp_cluster_server *server = calloc(cluster->server_count, sizeof *server);
    if (!*out || !server) {
        free(server);
        dp_cluster_free(out);
        return dp_fail(err, DP_NOMEM, "no memory for a cluster file");
    }
    **out = *cluster;
    memcpy(server, cluster->server, cluster->server_count * sizeof *server);
    (*out)->server = server;
    enum dp_status st = change_all(*out, file, shorten, err);
    if (st != DP_OK)
        dp_cluster_free(out);
    return st;
}

/* ---- `dir` */

struct dir_name {
    char *path;
    const char *in, *name;
};

#define DIR_NAMES 7

static void list_names(struct dp_cluster *c, struct dir_name out[DIR_NAMES])
{
    const char *best = c->checkpoint.every > 0 && c->durability != DP_CLUSTER_NONE ? c->checkpoint.to : "";
    const struct dir_name names[DIR_NAMES] = {
        {c->training.report, c->dir, "report.json"},
        {c->training.steps, c->dir, "steps"},
        {c->training.best, best, "best"}, /* which the servers must reach, too */
        {c->data.cache, c->dir, "cache"},
        {c->data.names, c->dir, dp_side_files[DP_SIDE_NAMES].name},
        {c->data.columns, c->dir, dp_side_files[DP_SIDE_COLUMNS].name},
        {c->data.interactions, c->dir, dp_side_files[DP_SIDE_INTERACTIONS].name},
    };
    memcpy(out, names, sizeof names);
}

static bool is_in(const struct dir_name *name)
{
    size_t len = strlen(name->in);
    return len > 0 && strncmp(name->path, name->in, len) == 0 && name->path[len] == '/' &&
           strcmp(name->path + len + 1, name->name) == 0;
}

enum dp_status dp_cluster_dir_use(struct dp_cluster *cluster, struct dp_error *err)
{
    struct dir_name name[DIR_NAMES];
    list_names(cluster, name);
    for (size_t i = 0; cluster->dir[0] && i < DIR_NAMES; i++) {
        char path[DP_PATH_MAX + 32];
        int len = snprintf(path, sizeof path, "%s/%s", name[i].in, name[i].name);
        if (name[i].path[0] || !name[i].in[0])
            continue;
        if (len > DP_PATH_MAX)
            return dp_fail(err, DP_ARGUMENT, "'dir': the path of %s in it has over %d bytes", name[i].name,
                           DP_PATH_MAX);
        memcpy(name[i].path, path, (size_t)len + 1);
    }
    return DP_OK;
}

enum dp_status dp_cluster_dir_of_run(struct dp_cluster *cluster, char path[DP_PATH_MAX + 1],
                                     struct dp_error *err)
{
    const uint32_t run = cluster->training.run;
    char *const of_run[] = {cluster->training.report, cluster->training.steps};
    struct dir_name name[DIR_NAMES];
    list_names(cluster, name);
    path[0] = '\0';
    for (size_t i = 0; cluster->dir[0] && i < DIR_NAMES; i++) {
        char own[DP_PATH_MAX + 48];
        if ((name[i].path != of_run[0] && name[i].path != of_run[1]) || !is_in(&name[i]))
            continue;
        int len = snprintf(own, sizeof own, "%s/runs/%" PRIu32 "/%s", cluster->dir, run, name[i].name);
        if (len > DP_PATH_MAX)
            return dp_fail(err, DP_ARGUMENT, "'dir': the path of run %" PRIu32 " in it has over %d bytes",
                           run, DP_PATH_MAX);
        memcpy(name[i].path, own, (size_t)len + 1);
        (void)snprintf(path, DP_PATH_MAX + 1, "%.*s", len - (int)strlen(name[i].name) - 1, own);
    }
    return DP_OK;
}

void dp_cluster_dir_leave(struct dp_cluster *cluster)
{
    struct dir_name name[DIR_NAMES];
    list_names(cluster, name);
    for (size_t i = 0; cluster->dir[0] && i < DIR_NAMES; i++)
        if (is_in(&name[i]))
            name[i].path[0] = '\0';
    cluster->dir[0] = '\0';
}
