#include "server/control/register_names.h"

#include "common/model/stream.h"
#include "common/wire/address.h"
#include "server/control/generation.h"
#include "server/control/register.h"
#include "server/control/register_values.h"
#include "server/control/stores.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum setter { BY_ITSELF, BY_SERVERS, BY_CLIENTS };

struct register_name {
    const char *name; /* of a run: what follows "run/N/" */
    bool of_run;
    enum setter setter;
    enum dp_status (*check)(const struct dp_control_names_rules *rules,
                            const struct dp_control_names_set *set, uint32_t run, struct dp_error *err);
};

static enum dp_status check_stores(const struct dp_control_names_rules *rules,
                                   const struct dp_control_names_set *set, uint32_t run, struct dp_error *err)
{
    (void)run;
    return dp_stores_check(set->before, set->before_size, set->bytes, set->size, rules->shards,
                           set->server_shard - 1, err);
}

static enum dp_status check_run(const struct dp_control_names_rules *rules, uint64_t run,
                                struct dp_error *err)
{
    uint64_t last = dp_run_last(rules->wall_s);
    if (run <= last)
        return DP_OK;
    if (run <= dp_run_last(rules->wall_s + DP_RUN_SOON_S))
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_STREAMS, .subject = run},
                            "run %" PRIu64 " cannot be chosen yet by this server's clock", run);
    return dp_fail(err, DP_INVALID,
                   "run %" PRIu64 ": the first server accepts new runs up to %" PRIu64
                   ", one more each second; use a lower number",
                   run, last);
}

static enum dp_status check_runs(const struct dp_control_names_rules *rules,
                                 const struct dp_control_names_set *set, uint32_t run, struct dp_error *err)
{
    enum dp_status st = dp_control_values_check_runs(set, &run, err);
    return st == DP_OK ? check_run(rules, run, err) : st;
}

/* Whose it is: the name has the number of its first shard. */
static enum dp_status check_address(const struct dp_control_names_rules *rules,
                                    const struct dp_control_names_set *set, uint32_t run,
                                    struct dp_error *err)
{
    struct dp_address address;
    char name[DP_ADDRESS_NAME_BYTES];
    (void)rules;
    (void)run;
    dp_address_name(set->server_shard - 1, name);
    if (strcmp(name, set->name) != 0)
        return dp_fail(err, DP_INVALID, "the server of shard %" PRIu32 " sets '%s' only",
                       set->server_shard - 1, name);
    return dp_address_decode(set->bytes, set->size, &address, err);
}

static const struct register_name address_row = {DP_ADDRESS_PREFIX, false, BY_SERVERS, check_address};

static const struct register_name rows[] = {
    {DP_STORES_NAME, false, BY_SERVERS, check_stores},
    {DP_CONTROL_GENERATION_NAME, false, BY_ITSELF, NULL},
    {DP_CONTROL_CLUSTER_NAME, false, BY_ITSELF, NULL},
    {"runs", false, BY_CLIENTS, check_runs},
    {DP_CONTROL_ENDED_NAME, false, BY_CLIENTS, NULL},
    {DP_CONTROL_FAILED_NAME, false, BY_CLIENTS, NULL},
    {"view", true, BY_CLIENTS, dp_control_values_check_view},
    {"plan", true, BY_CLIENTS, dp_control_values_check_plan},
    {"verdict", true, BY_CLIENTS, dp_control_values_check_verdict},
};

/* NULL: the name is free. */
static const struct register_name *row_of(const char *name, uint64_t run)
{
    const char *rest = run > 0 ? strchr(name + strlen("run/"), '/') + 1 : name;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].of_run == (run > 0) && strcmp(rows[i].name, rest) == 0)
            return &rows[i];
    return run == 0 && strncmp(name, DP_ADDRESS_PREFIX, strlen(DP_ADDRESS_PREFIX)) == 0 ? &address_row : NULL;
}

bool dp_control_names_is_kept(const char *name)
{
    uint64_t run = dp_control_register_run_of(name);
    return run == 0 && !row_of(name, run);
}

static enum dp_status check_setter(const struct register_name *row, const struct dp_control_names_set *set,
                                   struct dp_error *err)
{
    bool by_server = set->server_shard > 0;
    if (row && row->setter == BY_ITSELF)
        return dp_fail(err, DP_INVALID, "only the first server itself sets this value");
    if (row && row->setter == BY_SERVERS && !by_server)
        return dp_fail(err, DP_INVALID,
                       "only servers set this value, each for its own shards (if this is a server, "
                       "its release is older than the first server's: use the same release on all)");
    if (by_server && !(row && row->setter == BY_SERVERS))
        return dp_fail(err, DP_INVALID, "server_shard: %" PRIu32 ", but servers do not set this value",
                       set->server_shard);
    return DP_OK;
}

enum dp_status dp_control_names_check(const struct dp_control_names_rules *rules,
                                      const struct dp_control_names_set *set, struct dp_error *err)
{
    uint64_t run = dp_control_register_run_of(set->name);
    const struct register_name *row = row_of(set->name, run);
    enum dp_status st = check_setter(row, set, err);
    if (st == DP_OK && run > 0)
        st = check_run(rules, run, err);
    if (st == DP_OK && row && row->check)
        st = row->check(rules, set, (uint32_t)run, err);
    return st == DP_OK ? st : dp_wrap(err, st, "register value '%s'", set->name);
}
