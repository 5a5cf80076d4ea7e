#include "common/config/cluster_counted.h"

#include "common/base/parse.h"
#include "common/config/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool dp_cluster_is_host(const char *text)
{
    return text[0] && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-:[]%") ==
                          strlen(text);
}

/* ---- the first server */

/* HOST, HOST:PORT, [ADDRESS]:PORT, or an IPv6 address alone. what: names it in messages. */
static enum dp_status parse_first(const char *text, const char *what, struct dp_cluster_first *out,
                                  struct dp_error *err)
{
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    uint64_t port = 0;
    bool has_port = colon && (bracket ? colon == bracket + 1 : strchr(text, ':') == colon);
    size_t len = has_port ? (size_t)(colon - text) : strlen(text);
    enum dp_status st = DP_OK;
    *out = (struct dp_cluster_first){.from = what};
    if (len <= DP_HOST_MAX)
        memcpy(out->host, text, len);
    if (!dp_cluster_is_host(out->host) || (text[0] == '[') != (bracket != NULL))
        return dp_fail(err, DP_ARGUMENT, "%s is \"%.300s\", but must be HOST or HOST:PORT", what, text);
    if (has_port)
        st = dp_parse_u64(colon + 1, 1, 65535, what, &port, err);
    out->port = (uint32_t)port;
    return st;
}

static void take_first(struct dp_cluster *cluster, const struct dp_cluster_first *first)
{
    struct dp_cluster_server *server = &cluster->server[0];
    cluster->first = *first;
    if (first->port == 0)
        cluster->first.port = cluster->counted.port ? cluster->counted.port : DP_FIRST_PORT;
    memcpy(server->host, first->host, sizeof server->host);
    server->port = cluster->first.port;
}

enum dp_status dp_cluster_set_first(struct dp_cluster *cluster, const char *text, const char *from,
                                    struct dp_error *err)
{
    struct dp_cluster_first first;
    if (cluster->counted.count == 0)
        return dp_fail(err, DP_ARGUMENT,
                       "%s goes with servers = { count = N; ... }: this cluster file lists its servers, and "
                       "the first one is %.200s",
                       from, cluster->server[0].host);
    enum dp_status st = parse_first(text, from, &first, err);
    if (st == DP_OK)
        take_first(cluster, &first);
    return st;
}

/* A file that does not say it leaves it to the environment. A platform may set MASTER_ADDR for others, so
 * it comes last. */
static enum dp_status find_first(struct dp_cluster *cluster, struct dp_error *err)
{
    static const char *const names[] = {"DOWNPOUR_FIRST", "MASTER_ADDR"};
    const char *from = "'first'", *text = cluster->first_text;
    for (size_t i = 0; !text[0] && i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        from = names[i];
        text = value ? value : "";
    }
    return text[0] ? dp_cluster_set_first(cluster, text, from, err) : DP_OK;
}

enum dp_status dp_cluster_has_first(const struct dp_cluster *cluster, struct dp_error *err)
{
    if (cluster->counted.count == 0 || cluster->first.from)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "the cluster file counts its servers, and nothing names the first one: give it first = "
                   "\"HOST[:PORT]\", or set DOWNPOUR_FIRST to that");
}

/* ---- patterns */

struct pattern_values {
    char host[DP_HOST_MAX + 1], number[16];
    const char *job; /* NULL: there is none */
};

static const char *job_of(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"};
    const char *job = NULL;
    for (size_t i = 0; (!job || !job[0]) && i < sizeof names / sizeof names[0]; i++)
        job = getenv(names[i]);
    return job && job[0] && strcspn(job, "/%") == strlen(job) ? job : NULL;
}

/* values NULL: only the pattern's form is checked. */
static enum dp_status fill(const char *pattern, const struct pattern_values *values, const char *key,
                           char *out, size_t size, struct dp_error *err)
{
    size_t len = 0;
    for (const char *at = pattern; *at; at++) {
        char one[2] = {*at, '\0'};
        const char *put = one;
        if (*at == '%') {
            at++;
            put = *at == '%'                    ? "%"
                  : !*at || !strchr("hjn", *at) ? NULL
                  : !values                     ? ""
                  : *at == 'h'                  ? values->host
                  : *at == 'n'                  ? values->number
                                                : values->job;
            if (!put && *at == 'j')
                return dp_fail(err, DP_ARGUMENT,
                               "'servers.%s' is \"%.200s\", but the environment names no job for %%j: it "
                               "looks at SLURM_JOB_ID, PBS_JOBID, LSB_JOBID and JOB_ID",
                               key, pattern);
            if (!put)
                return dp_fail(err, DP_ARGUMENT,
                               "'servers.%s' is \"%.200s\": only %%h (this host), %%j (the job), %%n (the "
                               "server's number) and %%%% (a %%) are known",
                               key, pattern);
        }
        size_t add = strlen(put);
        if (len + add >= size)
            return dp_fail(err, DP_ARGUMENT, "'servers.%s' is longer than %zu bytes", key, size - 1);
        memcpy(out + len, put, add);
        len += add;
    }
    out[len] = '\0';
    return DP_OK;
}

static enum dp_status fill_host(const char *pattern, const struct pattern_values *values, const char *key,
                                char out[DP_HOST_MAX + 1], struct dp_error *err)
{
    enum dp_status st = fill(pattern, values, key, out, DP_HOST_MAX + 1, err);
    if (st == DP_OK && out[0] && !dp_cluster_is_host(out))
        st = dp_fail(err, DP_ARGUMENT, "'servers.%s' is \"%s\": no name or address of a machine", key, out);
    return st;
}

/* Whether %n stands in it. */
static bool has_number(const char *pattern)
{
    for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%'))
        if (at[1] == 'n')
            return true;
    return false;
}

enum dp_status dp_cluster_check_counted(const struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_cluster_counted *c = &cluster->counted;
    struct dp_cluster_first first;
    char text[DP_PATH_MAX + 1];
    enum dp_status st = DP_OK;
    if (c->port != 0 && c->port + c->shards > 65535)
        st = dp_fail(err, DP_ARGUMENT,
                     "'servers.port' is %" PRIu32 ": its %" PRIu32 " shards would need ports up to %" PRIu32
                     ", over 65535",
                     c->port, c->shards, c->port + c->shards);
    if (st == DP_OK)
        st = fill(c->store, NULL, "store", text, sizeof text, err);
    if (st == DP_OK)
        st = fill_host(c->host, NULL, "host", text, err);
    if (st == DP_OK)
        st = fill_host(c->listen, NULL, "listen", text, err);
    return st == DP_OK && cluster->first_text[0] ? parse_first(cluster->first_text, "'first'", &first, err)
                                                 : st;
}

enum dp_status dp_cluster_count_out(struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_cluster_counted *c = &cluster->counted;
    if (c->count == 0)
        return DP_OK;
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        struct dp_cluster_server *server = &cluster->server[i];
        int len = snprintf(server->store, sizeof server->store, "%s%s", c->store,
                           has_number(c->store) ? "" : "/server-%n");
        if (len >= (int)sizeof server->store)
            return dp_fail(err, DP_ARGUMENT, "'servers.store' is longer than %d bytes", DP_PATH_MAX - 10);
    }
    return find_first(cluster, err);
}

enum dp_status dp_cluster_settle(struct dp_cluster *cluster, uint32_t server, struct dp_error *err)
{
    const struct dp_cluster_counted *c = &cluster->counted;
    struct dp_cluster_server *s = &cluster->server[server];
    struct pattern_values values = {.job = job_of()};
    char pattern[DP_PATH_MAX + 1], host[DP_HOST_MAX + 1];
    DP_ASSERT(server < cluster->server_count);
    if (c->count == 0)
        return DP_OK;
    if (gethostname(values.host, sizeof values.host - 1) != 0 || strchr(values.host, '/'))
        return dp_fail(err, DP_IO, "this machine's name cannot be read");
    (void)snprintf(values.number, sizeof values.number, "%" PRIu32, server);
    memcpy(pattern, s->store, sizeof pattern);
    enum dp_status st = fill(pattern, &values, "store", s->store, sizeof s->store, err);
    if (st == DP_OK)
        st = fill_host(c->host, &values, "host", host, err);
    if (st == DP_OK)
        st = fill_host(c->listen, &values, "listen", s->listen, err);
    if (st != DP_OK || server == 0) /* the first one is where the others look for it */
        return st;
    memcpy(s->host, host, sizeof host);
    s->port = c->port;
    return DP_OK;
}

void dp_cluster_uncount(struct dp_cluster *cluster)
{
    cluster->counted = (struct dp_cluster_counted){0};
    cluster->first = (struct dp_cluster_first){0};
    cluster->first_text[0] = '\0';
    for (uint32_t i = 0; i < cluster->server_count; i++)
        cluster->server[i].listen[0] = '\0';
}

/* ---- endpoints */

uint32_t dp_cluster_shards(const struct dp_cluster *cluster)
{
    uint32_t shards = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++)
        shards += cluster->server[i].shards;
    return shards;
}

static void endpoint(const char *host, uint32_t port, char *out, size_t size)
{
    /* An IPv6 address stands in brackets before a port. */
    bool path = strncmp(host, "ipc:///", 7) == 0;
    bool bare_ipv6 = !path && strchr(host, ':') && host[0] != '[';
    const char *open = bare_ipv6 ? "[" : "", *close = bare_ipv6 ? "]" : "";
    if (!host[0])
        out[0] = '\0';
    else if (path)
        (void)snprintf(out, size, "%s-%" PRIu32, host, port);
    else if (port == 0)
        (void)snprintf(out, size, "tcp://%s%s%s:*", open, host, close);
    else
        (void)snprintf(out, size, "tcp://%s%s%s:%" PRIu32, open, host, close, port);
}

static uint32_t port_of(const struct dp_cluster *cluster, const struct dp_cluster_server *server,
                        uint32_t shard)
{
    if (server->shard_port[shard] != 0)
        return server->shard_port[shard];
    return cluster->counted.count > 0 && cluster->counted.port == 0 ? 0 : server->port + 1 + shard;
}

void dp_cluster_shard_endpoint(const struct dp_cluster *cluster, uint32_t shard, char *out, size_t size)
{
    uint32_t server = 0;
    DP_ASSERT(shard < dp_cluster_shards(cluster));
    while (shard >= cluster->server[server].shards)
        shard -= cluster->server[server++].shards;
    const struct dp_cluster_server *s = &cluster->server[server];
    bool known = cluster->counted.count == 0 || s->shard_port[shard] != 0;
    endpoint(known ? s->host : "", port_of(cluster, s, shard), out, size);
}

void dp_cluster_control_endpoint(const struct dp_cluster *cluster, uint32_t server, char *out, size_t size)
{
    DP_ASSERT(server < cluster->server_count);
    endpoint(cluster->server[server].host, cluster->server[server].port, out, size);
}

void dp_cluster_listen_endpoint(const struct dp_cluster *cluster, uint32_t server, uint32_t socket, char *out,
                                size_t size)
{
    const struct dp_cluster_server *s = &cluster->server[server];
    DP_ASSERT(server < cluster->server_count && socket <= s->shards);
    endpoint(s->listen[0] ? s->listen : s->host, socket == 0 ? s->port : port_of(cluster, s, socket - 1), out,
             size);
}
