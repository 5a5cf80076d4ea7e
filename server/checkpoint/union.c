#include "server/checkpoint/union.h"

#include "server/checkpoint/union_settle.h"
#include "server/durable/push_ids_union.h"
#include "server/durable/steps_mark.h"

#include <stdlib.h>
#include <string.h>

/* ---- ids */

static enum dp_status unpack_ids(const struct dp_union_part *part, uint32_t shard, struct dp_push_ids **out,
                                 struct dp_error *err)
{
    if (dp_push_ids_new(out) != DP_OK)
        return dp_fail(err, DP_NOMEM, "no memory for push ids");
    enum dp_status st = dp_push_ids_unpack(*out, part->ids, part->ids_bytes, err);
    if (st == DP_OK)
        return DP_OK;
    dp_push_ids_free(out);
    return dp_wrap(err, st, "shard %" PRIu32, shard);
}

static enum dp_status copy_exceptions(const struct dp_push_ids *ids, uint32_t shard, uint32_t shards,
                                      struct dp_push_exceptions *out, struct dp_error *err)
{
    const struct dp_push_exceptions *from = dp_push_ids_exceptions(ids);
    const struct dp_range own = dp_range_of_shard(shard, shards);
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < from->count && st == DP_OK; i++) {
        const struct dp_push_exception *one = &from->one[i];
        st = one->has.first >= own.first && one->has.last <= own.last
                 ? dp_push_exceptions_append(out, one, err)
                 : dp_fail(err, DP_CORRUPT,
                           "shard %" PRIu32 ": it has push %" PRIu64 " of stream %016" PRIx64
                           " for keys %016" PRIx64 " to %016" PRIx64
                           ", which are not all its own: its store is damaged; restore it from a checkpoint",
                           shard, one->number, one->stream, one->has.first, one->has.last);
    }
    return st;
}

static enum dp_status unite_ids(const struct dp_union_part *parts, struct dp_union *out, struct dp_error *err)
{
    enum dp_status st =
        dp_push_ids_new(&out->all) == DP_OK ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for push ids");
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++) {
        struct dp_push_ids *own = NULL;
        st = unpack_ids(&parts[i], i, &own, err);
        if (st == DP_OK)
            st = copy_exceptions(own, i, out->shards, &out->had[i], err);
        if (st == DP_OK && dp_push_ids_merge(out->all, own) != DP_OK)
            st = dp_fail(err, DP_NOMEM, "no memory for push ids");
        dp_push_ids_free(&own);
    }
    return st;
}

struct gathering {
    struct dp_union_lacking *to;
    uint32_t size;
    bool no_memory, too_many;
};

static bool gather(void *context, uint64_t stream, uint64_t number)
{
    struct gathering *g = context;
    g->too_many = g->to->count == DP_UNION_LACKING_MAX;
    if (g->too_many)
        return false;
    if (g->to->count == g->size) {
        uint32_t size = g->size ? 2 * g->size : 64;
        struct dp_copy_push *more = realloc(g->to->push, size * sizeof *more);
        g->no_memory = !more;
        if (!more)
            return false;
        g->to->push = more;
        g->size = size;
    }
    g->to->push[g->to->count++] = (struct dp_copy_push){stream, number};
    return true;
}

static enum dp_status find_lacking(const struct dp_union_part *part, uint32_t shard,
                                   const struct dp_push_ids *all, struct dp_union_lacking *out,
                                   struct dp_error *err)
{
    struct dp_push_ids *own = NULL;
    struct gathering gathering = {.to = out};
    enum dp_status st = unpack_ids(part, shard, &own, err);
    if (st != DP_OK)
        return st;
    dp_push_ids_lacking(own, all, gather, &gathering);
    dp_push_ids_free(&own);
    if (gathering.no_memory)
        return dp_fail(err, DP_NOMEM, "no memory for the pushes that shard %" PRIu32 " lacks", shard);
    if (gathering.too_many)
        return dp_fail(err, DP_DATA,
                       "shard %" PRIu32
                       " lacks more than %u pushes that other shards have, the first one is number %" PRIu64
                       " of stream %016" PRIx64 ": its store is an older one than theirs, or was replaced",
                       shard, DP_UNION_LACKING_MAX, out->push[0].number, out->push[0].stream);
    return DP_OK;
}

static void count_stream(void *context, const struct dp_push_stream *stream)
{
    struct dp_union *out = context;
    if (dp_stream_is_training(stream->stream) && dp_stream_run(stream->stream) == out->last_run)
        out->pushes += stream->low + stream->used_above;
}

static void ignore_refused(void *context, uint64_t stream, uint64_t number, enum dp_status status)
{
    (void)context;
    (void)stream;
    (void)number;
    (void)status;
}

static void find_last(const struct dp_push_ids *all, struct dp_union *out)
{
    uint64_t last = dp_push_ids_last_training(all);
    if (last == 0)
        return;
    out->last_run = dp_stream_run(last);
    out->last_epoch = dp_stream_epoch(last);
    dp_push_ids_visit(all, count_stream, ignore_refused, out);
}

static enum dp_status make_ids(const struct dp_union_part *parts, struct dp_union *out, struct dp_error *err)
{
    enum dp_status st = unite_ids(parts, out, err);
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++)
        st = find_lacking(&parts[i], i, out->all, &out->lacking[i], err);
    if (st == DP_OK) {
        find_last(out->all, out);
        st = dp_union_settle(out, NULL, err);
    }
    return st;
}

/* ---- steps */

/* What the shards' steps have in common: the newest view, the greatest open step, what each member has finished. */
struct uniting {
    struct dp_steps *one;
    struct dp_view view;
    uint64_t open;
    struct dp_steps_place place[DP_MEMBERS_MAX];
};

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static enum dp_status add_steps(struct uniting *u, uint32_t shard, struct dp_error *err)
{
    const struct dp_view *view = &u->one->view;
    if (u->view.run != 0 && (view->run != u->view.run || view->members != u->view.members))
        return dp_fail(err, DP_AGAIN,
                       "a run begins: shard %" PRIu32 " is in run %" PRIu32 ", others in run %" PRIu32, shard,
                       view->run, u->view.run);
    bool newer = view->number > u->view.number;
    if (newer) {
        struct dp_view copy;
        enum dp_status st = dp_view_copy(view, &copy, err);
        if (st != DP_OK)
            return st;
        dp_view_clear(&u->view);
        u->view = copy;
    }
    u->open = greater(u->open, u->one->open);
    for (uint32_t rank = 0; rank < view->members; rank++) {
        struct dp_steps_place *place = &u->place[rank];
        place->next = greater(place->next, u->one->next[rank]);
        if (newer) /* those who knew less had not decided about the member yet */
            place->start = place->former = 0;
        if (view->number == u->view.number) {
            place->start = greater(place->start, u->one->start[rank]);
            place->former = greater(place->former, u->one->former[rank]);
        }
    }
    return DP_OK;
}

/* Pushes of the open step of a synchronous run are not in the checkpoint: who made them makes them again. A member that has pushed that step
 * and has left behind it would do so in no step that shards know it in, and its gradient would be lost: the step is closed soon. */
static enum dp_status check_leavers(const struct uniting *u, struct dp_error *err)
{
    for (uint32_t rank = 0; rank < u->view.members; rank++) {
        uint64_t until = u->view.member[rank].until;
        bool has_left = until != UINT64_MAX && until > u->open && u->place[rank].next > u->open;
        if (has_left || u->place[rank].former > u->open)
            return dp_fail(err, DP_AGAIN,
                           "worker %" PRIu32 " has ended with step %" PRIu64
                           ", which waits for other workers",
                           rank, u->open);
    }
    return DP_OK;
}

/* What members have finished by pushes of the open step is not in the checkpoint. */
static void drop_open_step(struct uniting *u)
{
    for (uint32_t rank = 0; rank < u->view.members; rank++) {
        const struct dp_member *member = &u->view.member[rank];
        struct dp_steps_place *place = &u->place[rank];
        /* Taken back on one shard and passed on another: without backups, steps below the open one were closed without it. */
        bool is_passed = u->view.slack == 0 && place->start != UINT64_MAX && place->next < u->open &&
                         place->next < member->until;
        if (is_passed)
            place->start = UINT64_MAX;
        uint64_t last = place->start == UINT64_MAX ? u->open : greater(u->open, place->start);
        place->next = place->next < last ? place->next : last;
    }
}

static enum dp_status pack_steps(struct uniting *u, struct dp_union *out, struct dp_error *err)
{
    out->run = u->view.run;
    out->has_sync = dp_mode_of(u->view.mode)->by_step;
    out->step = out->has_sync ? u->open : 0;
    enum dp_status st = out->has_sync ? check_leavers(u, err) : DP_OK;
    if (st != DP_OK)
        return st;
    if (out->has_sync)
        drop_open_step(u);
    memset(u->one, 0, sizeof *u->one);
    dp_steps_restore(u->one, &u->view, u->open, u->place, 0);
    out->steps_bytes = dp_steps_mark_bytes(u->one);
    out->steps = malloc(out->steps_bytes);
    if (out->steps)
        dp_steps_mark_pack(u->one, out->steps);
    dp_steps_clear(u->one);
    return out->steps ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the steps of a cut");
}

static enum dp_status make_steps(const struct dp_union_part *parts, struct dp_union *out,
                                 struct dp_error *err)
{
    struct uniting *u = calloc(1, sizeof *u);
    if (u)
        u->one = malloc(sizeof *u->one);
    enum dp_status st = u && u->one ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the steps of a cut");
    uint32_t with = 0;
    for (uint32_t i = 0; i < out->shards && st == DP_OK; i++) {
        if (parts[i].steps_bytes == 0)
            continue;
        memset(u->one, 0, sizeof *u->one);
        if (dp_steps_mark_unpack(parts[i].steps, parts[i].steps_bytes, u->one, 0, err) != DP_OK) {
            st = dp_wrap(err, DP_CORRUPT, "shard %" PRIu32, i);
            break;
        }
        with++;
        st = add_steps(u, i, err);
        dp_steps_clear(u->one);
    }
    if (st == DP_OK && with > 0 && with < out->shards)
        st = dp_fail(err, DP_AGAIN, "a run begins: %" PRIu32 " of %" PRIu32 " shards are in it", with,
                     out->shards);
    if (st == DP_OK && with > 0)
        st = pack_steps(u, out, err);
    if (u) {
        dp_view_clear(&u->view);
        free(u->one);
    }
    free(u);
    return st;
}

/* ---- all */

enum dp_status dp_union_make(const struct dp_union_part *parts, uint32_t shards, struct dp_union *out,
                             struct dp_error *err)
{
    DP_ASSERT(shards > 0);
    *out = (struct dp_union){.shards = shards,
                             .lacking = calloc(shards, sizeof *out->lacking),
                             .had = calloc(shards, sizeof *out->had)};
    enum dp_status st = out->lacking && out->had ? make_steps(parts, out, err)
                                                 : dp_fail(err, DP_NOMEM, "no memory for a cut");
    if (st == DP_OK)
        st = make_ids(parts, out, err);
    if (st != DP_OK)
        dp_union_clear(out);
    return st;
}

void dp_union_clear(struct dp_union *cut)
{
    for (uint32_t i = 0; i < cut->shards && cut->lacking; i++)
        free(cut->lacking[i].push);
    for (uint32_t i = 0; i < cut->shards && cut->had; i++)
        dp_push_exceptions_clear(&cut->had[i]);
    free(cut->lacking);
    free(cut->had);
    dp_push_exceptions_clear(&cut->exceptions);
    dp_push_ids_free(&cut->all);
    free(cut->ids);
    free(cut->steps);
    *cut = (struct dp_union){0};
}
