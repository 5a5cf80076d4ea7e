/* Push: gradients -> gathered by distinct key, once, in the type of the wire -> all checked -> a shard request a
 * shard.
 * Why       The push is checked completely before any shard gets a part of it: a NaN never reaches half of
 *           the shards. */
#include "common/client/member.h"
#include "common/client/partition.h"

#include "common/base/bf16.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Gradients of one key given several times: summed in the order given, in f32. */
static void sum_rows(float *to, const struct dp_keys *keys, size_t d, const float *gradients, size_t dim)
{
    memcpy(to, gradients + keys->order[keys->starts[d]] * dim, dim * sizeof *to);
    for (size_t j = keys->starts[d] + 1; j < keys->starts[d + 1]; j++) {
        const float *more = gradients + keys->order[j] * dim;
        for (size_t c = 0; c < dim; c++)
            to[c] += more[c];
    }
}

static void gather_f32(float *to, const struct dp_keys *keys, const float *gradients, size_t dim)
{
    for (size_t d = 0; d < keys->distinct; d++, to += dim) {
        if (keys->starts[d + 1] - keys->starts[d] == 1)
            memcpy(to, gradients + keys->order[keys->starts[d]] * dim, dim * sizeof *to);
        else
            sum_rows(to, keys, d, gradients, dim);
    }
}

static enum dp_status gather_bf16(unsigned char *to, const struct dp_keys *keys, const float *gradients,
                                  size_t dim, struct dp_error *err)
{
    float *sum = NULL;
    for (size_t d = 0; d < keys->distinct; d++, to += 2 * dim) {
        const float *row = gradients + keys->order[keys->starts[d]] * dim;
        if (keys->starts[d + 1] - keys->starts[d] > 1) {
            if (!sum)
                sum = malloc(dim * sizeof *sum);
            if (!sum)
                return dp_fail(err, DP_NOMEM, "no memory for a row");
            sum_rows(sum, keys, d, gradients, dim);
            row = sum;
        }
        dp_bf16_put(row, to, dim);
    }
    free(sum);
    return DP_OK;
}

static enum dp_status gather(const struct dp_client *client, const struct dp_partition_part *part,
                             const float *gradients, struct dp_error *err)
{
    const struct dp_keys *keys = part->keys;
    unsigned char *values = dp_block_bytes(part->block) + part->values_at;
    size_t dim = part->table->spec.dim;
    if (keys->distinct == 0)
        return DP_OK;
    if (client->type == DP_BF16) {
        if (!keys->lent)
            return gather_bf16(values, keys, gradients, dim, err);
        dp_bf16_put(gradients, values, keys->distinct * dim);
    } else if (keys->lent) {
        memcpy(values, gradients, keys->distinct * dim * sizeof *gradients);
    } else {
        gather_f32((float *)(void *)values, keys, gradients, dim);
    }
    return DP_OK;
}

static bool all_finite(const struct dp_client *client, const void *values, size_t n)
{
    return client->type == DP_BF16 ? dp_all_finite_bf16(values, n) : dp_all_finite_f32(values, n);
}

/* Looks for the value in what was given, so that its owner finds it. */
static enum dp_status name_the_culprit(const struct dp_client *client, const struct dp_partition_part *part,
                                       const float *gradients, struct dp_error *err)
{
    const struct dp_keys *keys = part->keys;
    size_t dim = part->table->spec.dim, row_bytes = dim * dp_value_bytes(client->type), d = 0;
    const unsigned char *values = dp_block_bytes(part->block) + part->values_at;
    while (d + 1 < keys->distinct && all_finite(client, values + d * row_bytes, dim))
        d++;
    size_t from = keys->lent ? d : keys->starts[d], end = keys->lent ? d + 1 : keys->starts[d + 1];
    uint64_t key = dp_unmix(keys->mixed[d]);
    for (size_t j = from; j < end; j++) {
        size_t given = keys->lent ? j : keys->order[j];
        for (size_t c = 0; c < dim; c++) {
            double v = (double)gradients[given * dim + c];
            if (!isfinite(v))
                return dp_fail(err, DP_NOT_FINITE,
                               "push: table '%s', key %" PRIu64
                               ", column %zu: gradient is %f (row %zu of those "
                               "given); nothing was sent",
                               part->table->spec.name, key, c, v, given);
        }
    }
    return dp_fail(err, DP_NOT_FINITE,
                   "push: table '%s', key %" PRIu64
                   ": its gradients are finite, but %s is beyond the range of %s; nothing was sent",
                   part->table->spec.name, key, end - from > 1 ? "their sum" : "one",
                   client->type == DP_BF16 ? "bf16" : "f32");
}

static enum dp_status make(struct dp_client *client, struct dp_partition *partition,
                           const struct dp_push_part *given, uint32_t count, struct dp_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        enum dp_status st = dp_partition_add(partition, client, given[i].table, given[i].keys, err);
        if (st == DP_OK && !given[i].gradients && given[i].keys->count > 0)
            st = dp_fail(err, DP_ARGUMENT, "part %" PRIu32 " has no gradients", i);
        if (st == DP_OK)
            st = dp_partition_block(&partition->part[i], dp_value_bytes(client->type), err);
        if (st == DP_OK)
            st = gather(client, &partition->part[i], given[i].gradients, err);
        if (st != DP_OK)
            return dp_wrap(err, st, "push");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct dp_partition_part *part = &partition->part[i];
        const unsigned char *values = dp_block_bytes(part->block) + part->values_at;
        if (!all_finite(client, values, part->keys->distinct * part->table->spec.dim))
            return name_the_culprit(client, part, given[i].gradients, err);
    }
    enum dp_status st = dp_partition_cut(partition, client, DP_REQUEST_PUSH, true, err);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "push");
}

static enum dp_status take_pushed(struct dp_call *call, uint32_t server,
                                  const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                  struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)message;
    (void)err;
    struct dp_outcome *outcome = &call->outcome;
    /* One that was sent again may be repeated because of that alone: no news for its owner. */
    if (reply->repeated) {
        outcome->repeated |= to_shard->sends == 1;
        return DP_OK;
    }
    if (to_shard->request.member.given) {
        outcome->dropped += reply->dropped;
        outcome->gaps++;
        outcome->gap_sum += reply->gap;
        outcome->gap_max = reply->gap > outcome->gap_max ? reply->gap : outcome->gap_max;
    }
    if (!to_shard->request.measured || reply->dropped)
        return DP_OK;
    outcome->measured++;
    outcome->staleness_sum += reply->staleness;
    if (reply->staleness > outcome->staleness_max)
        outcome->staleness_max = reply->staleness;
    outcome->rows += reply->rows;
    outcome->changed_rows += reply->changed_rows;
    if (to_shard->request.by_staleness && reply->rate > 0) {
        outcome->divided++;
        outcome->divisor_sum += (double)to_shard->request.rate / (double)reply->rate;
    }
    return DP_OK;
}

/* A simple push's caller sees no outcome. Its number, of a stream of this client's own, is new to the shard
 * unless somebody else used it: these gradients were not applied. */
static enum dp_status take_pushed_first(struct dp_call *call, uint32_t server,
                                        const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                        struct dp_message **message, struct dp_error *err)
{
    if (reply->repeated && to_shard->sends == 1)
        return dp_fail(err, DP_INVALID,
                       "push: number %" PRIu64 " of stream %" PRIu64
                       " was applied before, and this one was not: two clients share a stream; close this "
                       "client and open another",
                       to_shard->request.number, to_shard->request.stream);
    return take_pushed(call, server, to_shard, reply, message, err);
}

/* Numbers are given last: a push that was not issued uses up none. */
static void number(struct dp_client *client, const struct dp_push_options *options)
{
    bool own = options->stream == 0;
    if (own && !client->session.stream_used)
        client->next_number = 0; /* another stream */
    for (uint32_t i = 0; i < client->shards; i++) {
        struct dp_request *r = &client->draft[i]->request;
        r->stream = own ? client->session.stream : options->stream;
        r->number = own ? client->next_number : options->number;
        r->rate = options->rate;
        const struct dp_pulled_at *at = options->pulled_at ? &options->pulled_at[i] : NULL;
        r->measured = at && at->applied != DP_NOT_MEASURED;
        r->pulled_at = r->measured ? at->applied : 0;
        r->pulled_lsn = r->measured ? at->lsn : 0;
        r->by_staleness = r->measured && options->by_staleness;
        r->examples = options->examples;
    }
    client->next_number += own;
    client->session.stream_used |= own;
}

static enum dp_status issue(struct dp_client *client, const struct dp_push_options *options,
                            const struct dp_push_part *parts, uint32_t count, bool simple,
                            uint32_t timeout_ms, struct dp_ticket *out, struct dp_error *err)
{
    struct dp_partition cut = {0};
    struct dp_call *call = NULL;
    enum dp_status st;
    out->id = 0;
    if (!(options->rate >= FLT_MIN) || !isfinite(options->rate)) /* as the shard checks it */
        return dp_fail(err, DP_ARGUMENT, "push: rate %g: must be finite and at least %g",
                       (double)options->rate, (double)FLT_MIN);
    if (options->examples > DP_EXAMPLES_MAX)
        return dp_fail(err, DP_ARGUMENT, "push: %" PRIu64 " examples, the limit is %llu", options->examples,
                       DP_EXAMPLES_MAX);
    if (options->by_staleness && !options->pulled_at)
        return dp_fail(err, DP_ARGUMENT,
                       "push: by_staleness, but without pulled_at its staleness is not measured");
    if (options->by_staleness && options->in_step && dp_mode_of(client->place.mode)->by_step)
        return dp_fail(
            err, DP_ARGUMENT,
            "push: by_staleness: in this mode one rate applies a step, whose pushes are not stale");
    st = options->in_step ? dp_client_member_check(client, "push", err) : DP_OK;
    if (st == DP_OK)
        st = make(client, &cut, parts, count, err);
    if (st != DP_OK)
        goto done;
    call = dp_call_new(client, 0, timeout_ms);
    if (!call) {
        st = dp_fail(err, DP_NOMEM, "push: no memory");
        goto done;
    }
    call->take = simple ? take_pushed_first : take_pushed;
    st = options->in_step ? dp_client_member_await_step(client, timeout_ms, err) : DP_OK;
    if (st != DP_OK)
        goto done;
    st = dp_client_await_room(client, "push", timeout_ms, err);
    if (st != DP_OK)
        goto done;
    if (options->stream == 0)
        st = dp_client_await_stream(client, "push: a stream of push numbers", timeout_ms, err);
    if (st != DP_OK)
        goto done;
    number(client, options);
    if (options->in_step)
        dp_client_member_sign(client, call, options->step, options->examples);
    dp_client_issue(client, &call, out);
done:
    dp_client_drop_draft(client);
    dp_call_free(&call);
    dp_partition_clear(&cut);
    return st;
}

enum dp_status dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                              const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                              struct dp_ticket *out, struct dp_error *err)
{
    return issue(client, options, parts, count, false, timeout_ms, out, err);
}

enum dp_status dp_client_push_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, const float *gradients, float rate,
                                   uint32_t timeout_ms, struct dp_error *err)
{
    const struct dp_push_part part = {.table = table, .keys = client->keys, .gradients = gradients};
    const struct dp_push_options options = {.rate = rate};
    struct dp_ticket ticket = {0};
    enum dp_status st = dp_keys_set(client->keys, keys, n, err);
    if (st == DP_OK)
        st = issue(client, &options, &part, 1, true, timeout_ms, &ticket, err);
    return st == DP_OK ? dp_client_finish(client, &ticket, "push", timeout_ms, err) : st;
}
