#include "common/client/client_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_client_table *find(const struct dp_client *client, const char *name)
{
    struct dp_client_table *table = client->tables;
    while (table && strcmp(table->spec.name, name) != 0)
        table = table->next;
    return table;
}

static enum dp_status make(struct dp_client *client, const struct dp_table_spec *spec, uint32_t timeout_ms,
                           const char *what, struct dp_error *err)
{
    struct dp_ticket ticket = {0};
    struct dp_call *call = dp_call_new(client, 0, timeout_ms);
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < client->shards && call; i++) {
        client->draft[i] = dp_shard_request_new(DP_REQUEST_CREATE_TABLE, DP_REPLY_TABLE_CREATED);
        if (!client->draft[i])
            dp_call_free(&call);
        else
            client->draft[i]->request.spec = *spec;
    }
    if (!call) {
        st = dp_fail(err, DP_NOMEM, "%s: no memory", what);
        goto done;
    }
    st = dp_client_await_room(client, what, timeout_ms, err);
    if (st != DP_OK)
        goto done;
    dp_client_issue(client, &call, &ticket);
    st = dp_client_finish(client, &ticket, what, timeout_ms, err);
done:
    dp_client_drop_draft(client);
    dp_call_free(&call);
    return st;
}

enum dp_status dp_client_table(struct dp_client *client, const struct dp_table_spec *spec,
                               uint32_t timeout_ms, struct dp_client_table **out, struct dp_error *err)
{
    char what[DP_TABLE_NAME_MAX + 16];
    *out = NULL;
    enum dp_status st = dp_table_check(spec, err);
    if (st != DP_OK)
        return st;
    (void)snprintf(what, sizeof what, "table '%s'", spec->name);
    struct dp_client_table *table = find(client, spec->name);
    if (table) {
        st = dp_table_same(&table->spec, spec, err);
        *out = st == DP_OK ? table : NULL;
        return st;
    }
    table = calloc(1, sizeof *table);
    if (!table)
        return dp_fail(err, DP_NOMEM, "%s: no memory", what);
    *table = (struct dp_client_table){
        .next = client->tables, .client = client, .spec = *spec, .id = dp_table_id(spec->name)};
    st = make(client, spec, timeout_ms, what, err);
    if (st != DP_OK) {
        free(table);
        return st;
    }
    client->tables = table;
    *out = table;
    return DP_OK;
}

/* Asked before any shard makes the table: one that lost its store must make it as the others have it. */
enum dp_status dp_client_table_kept(struct dp_client *client, const struct dp_table_spec *spec,
                                    uint32_t timeout_ms, struct dp_client_table **out, struct dp_error *err)
{
    struct dp_table_spec kept = *spec;
    bool is_there = false;
    *out = NULL;
    for (uint32_t shard = 0; shard < dp_client_shards(client) && !is_there; shard++) {
        struct dp_status_report *report = NULL;
        enum dp_status st = dp_client_status(client, shard, timeout_ms, &report, err);
        if (st != DP_OK)
            return st;
        for (uint32_t i = 0; i < report->tables && !is_there; i++) {
            is_there = strcmp(report->table[i].spec.name, spec->name) == 0;
            if (is_there)
                kept.init = report->table[i].spec.init;
        }
        dp_client_status_free(&report);
    }
    return dp_client_table(client, &kept, timeout_ms, out, err);
}
