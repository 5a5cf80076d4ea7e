/* Member: joining a run and leaving it.
 *     the register's view -> changed in one slot -> compare-and-set (again if another won) -> handed to every shard
 * Returning, where the seat has left: the view in which it has -> handed to every shard, which say where they are -> `from` a little
 *     later, compare-and-set, handed over -> all have accepted it: joined; else `from` is moved further, and so on
 * Why       The register decides which process has a place. A shard acts on the newest view that it was given, so the order in
 *           which members hand theirs over does not matter.
 *           Before a view says that a member returns, every shard knows that it left: so each knows which steps it had before.
 * Holds     A call that was cut short may be repeated: the incarnation is drawn once for a place, so a view that has it needs no change. */
#include "common/client/member.h"

#include "common/client/heartbeats.h"
#include "common/client/view_watch.h"

#include "common/model/mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS_NS UINT64_C(1000000)

/* Steps that the shards may go on by, while the view is agreed on and handed over. */
#define MARGIN_MIN 2u
#define MARGIN_MAX 1024u

#define STEP_MAX (UINT64_MAX / 2)

/* Of a seat that returns: all shards know it with this `from` and `until`, and would accept it from step `to` on. */
struct seat_return {
    bool known;
    uint64_t from, until, to;
    uint64_t margin;
};

/* What is to become of the slot: joined (by whom), or left (when). */
struct seat_change {
    const char *what;
    const struct dp_join *join; /* NULL: leaves */
    uint64_t until;
    uint64_t end_ns; /* deadline */
    struct seat_return back;
};

static uint32_t left_ms(struct dp_client *client, uint64_t end_ns)
{
    uint64_t now_ns = dp_awake_ns(&client->session.clock);
    return now_ns < end_ns ? (uint32_t)((end_ns - now_ns + MS_NS - 1) / MS_NS) : 0;
}

enum dp_status dp_client_member_check(const struct dp_client *client, const char *what, struct dp_error *err)
{
    enum dp_status st = dp_client_session_check_place(&client->session, what, err);
    if (st == DP_OK && !client->place.joined)
        st = dp_fail(err, DP_ARGUMENT, "%s: this client is no member of a run: call dp_client_join first",
                     what);
    return st;
}

enum dp_status dp_client_member_await_step(struct dp_client *client, uint32_t timeout_ms,
                                           struct dp_error *err)
{
    /* With backups no shard has to be near another: a pull says which step it is of. */
    if (!dp_mode_of(client->place.mode)->by_step || client->place.slack > 0)
        return DP_OK;
    enum dp_status st = dp_client_await_pushes(client, timeout_ms, err);
    /* Refused by some shards only: another may not have heard of the new process yet. */
    return st == DP_OK ? dp_client_session_check_place(&client->session, "push", err) : st;
}

void dp_client_member_sign(struct dp_client *client, struct dp_call *call, uint64_t step, uint64_t examples)
{
    const struct dp_client_place *place = &client->place;
    call->member = true;
    for (uint32_t i = 0; i < client->shards; i++) {
        if (client->draft[i])
            client->draft[i]->request.member = (struct dp_membership){.given = true,
                                                                      .run = place->run,
                                                                      .rank = place->rank,
                                                                      .view = place->view,
                                                                      .incarnation = place->incarnation,
                                                                      .step = step,
                                                                      .examples = examples};
    }
}

/* ---- the view ---- */

/* The one that the first to join makes. */
static enum dp_status make_view(const struct dp_join *join, struct dp_view *view, struct dp_error *err)
{
    struct dp_member *member = calloc(join->members, sizeof *member);
    if (!member)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " members", join->members);
    for (uint32_t i = 0; i < join->members; i++)
        member[i] = (struct dp_member){.until = UINT64_MAX, .from = join->first_step};
    *view = (struct dp_view){.run = join->run,
                             .mode = join->mode,
                             .slack = join->slack,
                             .first_step = join->first_step,
                             .members = join->members,
                             .member = member};
    return DP_OK;
}

static enum dp_status compare(const struct dp_view *view, const struct dp_join *join, struct dp_error *err)
{
    char theirs[DP_MODE_TEXT_BYTES], ours[DP_MODE_TEXT_BYTES];
    if (view->mode == join->mode && view->slack == join->slack && view->members == join->members &&
        view->first_step == join->first_step)
        return DP_OK;
    dp_mode_text(view->mode, view->slack, theirs);
    dp_mode_text(join->mode, join->slack, ours);
    return dp_fail(err, DP_EXISTS,
                   "run %" PRIu32 " is %s with %" PRIu32 " members from step %" PRIu64
                   ", as others joined it; this process means %s with %" PRIu32 " members from step %" PRIu64
                   ": start all with the same settings, or take another run",
                   view->run, theirs, view->members, view->first_step, ours, join->members, join->first_step);
}

static enum dp_status take_seat(struct dp_client *client, struct dp_view *view,
                                const struct seat_change *change, bool *changes, struct dp_error *err)
{
    struct dp_client_place *place = &client->place;
    struct dp_member *member = &view->member[place->rank];
    const struct seat_return *back = &change->back;
    bool left = member->until != UINT64_MAX;
    bool returns = back->known && back->from == member->from && back->until == member->until;
    enum dp_status st = compare(view, change->join, err);
    if (st != DP_OK)
        return st;
    *changes = false;
    if (change->join->returns && left && !returns)
        return DP_OK; /* first every shard has to know that it left */
    if (returns) {
        member->missed += back->to - (left ? member->until : member->from);
        member->from = back->to;
        member->until = UINT64_MAX;
    }
    *changes = returns || member->incarnation != place->incarnation;
    member->incarnation = place->incarnation;
    return DP_OK;
}

static enum dp_status give_seat(const struct dp_client_place *place, struct dp_view *view,
                                const struct seat_change *change, bool *changes, struct dp_error *err)
{
    struct dp_member *member = &view->member[place->rank];
    if (member->until != UINT64_MAX && member->until != change->until)
        return dp_fail(err, DP_INVALID,
                       "worker %" PRIu32 " left run %" PRIu32 " before step %" PRIu64
                       " already, and not before step %" PRIu64,
                       place->rank, view->run, member->until, change->until);
    if (change->until < member->from)
        return dp_fail(err, DP_ARGUMENT,
                       "worker %" PRIu32 " takes part in run %" PRIu32 " from step %" PRIu64
                       " on, and cannot leave before step %" PRIu64,
                       place->rank, view->run, member->from, change->until);
    *changes = member->until != change->until;
    member->until = change->until;
    return DP_OK;
}

static void lose_place(struct dp_client *client, const struct dp_view *view)
{
    const struct dp_client_place *place = &client->place;
    struct dp_error replaced = {0};
    bool left = place->rank < view->members && view->member[place->rank].until != UINT64_MAX;
    if (left) /* as a shard says it (server/steps/steps.c) */
        replaced.wait = (struct dp_wait){
            .reason = DP_WAIT_VIEW, .subject = view->run, .done = view->number, .total = view->number + 1};
    (void)dp_fail_wait(&replaced, DP_REPLACED, replaced.wait,
                       left ? "run %" PRIu32 " continues without worker %" PRIu32
                              ": it was silent for longer than --worker-timeout (training.worker_timeout) "
                              "and has to join again"
                            : "run %" PRIu32 ": another process joined as worker %" PRIu32
                              "; this process ends",
                       place->run, place->rank);
    dp_client_session_replace(&client->session, &replaced);
}

/* The register's value, changed; *changes: it has to be written. */
static enum dp_status apply(struct dp_client *client, const struct dp_register_value *value,
                            const struct seat_change *change, struct dp_view *view, bool *changes,
                            struct dp_error *err)
{
    struct dp_client_place *place = &client->place;
    enum dp_status st;
    if (value->version == 0 && place->seated)
        st = dp_fail(err, DP_DATA,
                     "the register no longer has the members of run %" PRIu32
                     ": was the first server's store replaced?",
                     place->run);
    else if (value->version == 0)
        st = make_view(change->join, view, err);
    else
        st = dp_view_of_register(value->bytes, value->size, place->run, value->version, view, err);
    if (st != DP_OK)
        return st;
    if (place->seated &&
        (place->rank >= view->members || view->member[place->rank].incarnation != place->incarnation)) {
        lose_place(client, view);
        return dp_client_session_check_place(&client->session, change->what, err);
    }
    return change->join ? take_seat(client, view, change, changes, err)
                        : give_seat(place, view, change, changes, err);
}

/* Stores the view of `value`, which becomes the current one. */
static enum dp_status store(struct dp_client *client, const char *name, struct dp_view *view,
                            struct dp_register_value *value, uint32_t timeout_ms, bool *won,
                            struct dp_error *err)
{
    uint64_t expected = value->version;
    size_t size = dp_view_bytes(view);
    void *bytes = malloc(size);
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "no memory for a view of %zu bytes", size);
    view->number = expected + 1;
    dp_view_pack(view, bytes);
    dp_register_value_clear(value);
    enum dp_status st =
        dp_client_register_set(client, name, expected, bytes, size, timeout_ms, won, value, err);
    if (st == DP_TOO_OLD) /* many others won since; or the run was dropped, as the next answer says */
        st = dp_client_register_get(client, name, 0, 0, timeout_ms, value, err);
    free(bytes);
    return st;
}

/* Until the register has the change. *view: with it; the caller's, also after a failure. */
static enum dp_status agree(struct dp_client *client, const struct seat_change *change, struct dp_view *view,
                            struct dp_error *err)
{
    char name[32];
    struct dp_register_value value;
    bool won = false, changes = true;
    dp_client_view_name(client->place.run, name, sizeof name);
    enum dp_status st =
        dp_client_register_get(client, name, 0, 0, left_ms(client, change->end_ns), &value, err);
    while (st == DP_OK && !won) {
        dp_view_clear(view);
        st = apply(client, &value, change, view, &changes, err);
        if (st != DP_OK || !changes)
            break;
        st = store(client, name, view, &value, left_ms(client, change->end_ns), &won, err);
    }
    client->place.seated |=
        st == DP_OK && view->member[client->place.rank].incarnation == client->place.incarnation;
    dp_register_value_clear(&value);
    return st;
}

/* ---- shards ---- */

static enum dp_status take_view(struct dp_call *call, uint32_t server,
                                const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)message;
    struct dp_call_view *all = call->view;
    all->acts_on = reply->version > all->acts_on ? reply->version : all->acts_on;
    all->begin = reply->begin > all->begin ? reply->begin : all->begin;
    all->begun &= reply->begun;
    if (reply->begin > STEP_MAX)
        return dp_fail(err, DP_INVALID, "is at step %" PRIu64 ", which no run comes to", reply->begin);
    if (reply->version < to_shard->request.version)
        return dp_fail(err, DP_INVALID,
                       "acts on view %" PRIu64 " of the run's members, though it was given %" PRIu64,
                       reply->version, to_shard->request.version);
    return DP_OK;
}

/* The session's view becomes this one; a shard that lacks it later gets it, too. */
static enum dp_status keep(struct dp_client *client, const struct dp_view *view, struct dp_error *err)
{
    struct dp_client_session *session = &client->session;
    size_t size = dp_view_bytes(view);
    struct dp_block *block = dp_block_new(size);
    if (!block)
        return dp_fail(err, DP_NOMEM, "no memory for a view of %zu bytes", size);
    dp_view_pack(view, dp_block_bytes(block));
    dp_block_drop(&session->view);
    session->view = block;
    session->view_bytes = size;
    client->place.view = view->number;
    client->place.from = view->member[client->place.rank].from;
    client->place.missed = view->member[client->place.rank].missed;
    return DP_OK;
}

/* A shard that acts on a newer view had it from the register: what the register has now is no older. */
static enum dp_status check_register(struct dp_client *client, const struct seat_change *change,
                                     uint64_t acts_on, struct dp_error *err)
{
    char name[32];
    struct dp_register_value value;
    dp_client_view_name(client->place.run, name, sizeof name);
    enum dp_status st =
        dp_client_register_get(client, name, 0, 0, left_ms(client, change->end_ns), &value, err);
    if (st == DP_OK && value.version < acts_on)
        st = dp_fail(
            err, DP_DATA,
            "the register has view %" PRIu64 " of run %" PRIu32 ", but the shards act on view %" PRIu64
            ": the first server's store, which has the run's members, was lost or is an old copy. Bring the "
            "right one back, or train on under a higher run number (downpour run --continue)",
            value.version, client->place.run, acts_on);
    dp_register_value_clear(&value);
    return st;
}

/* all: what they answered. */
static enum dp_status hand_over(struct dp_client *client, const struct seat_change *change,
                                const struct dp_view *view, struct dp_call_view *all, struct dp_error *err)
{
    uint32_t timeout_ms = left_ms(client, change->end_ns);
    *all = (struct dp_call_view){.begun = true};
    enum dp_status st = keep(client, view, err);
    if (st != DP_OK)
        return st;
    struct dp_call *call = dp_client_draft_all(client, DP_REQUEST_VIEW_PUT, DP_REPLY_VIEW, timeout_ms);
    for (uint32_t i = 0; i < client->shards && call; i++) {
        dp_shard_request_add(client->draft[i], client->session.view, 0, client->session.view_bytes);
        client->draft[i]->request.version = view->number;
        client->draft[i]->request.returns = change->join && change->join->returns;
        client->draft[i]->request.rank = client->place.rank;
    }
    if (call) {
        call->take = take_view;
        call->view = all;
    }
    st = dp_client_ask_all(client, &call, "the members of the run", timeout_ms, err);
    return st == DP_OK && all->acts_on > view->number ? check_register(client, change, all->acts_on, err)
                                                      : st;
}

/* Whether all shards have accepted the view's `from` of the seat. Else says what is to be tried next. */
static bool is_back(struct seat_change *change, const struct dp_member *seat, uint64_t number,
                    const struct dp_call_view *all)
{
    struct seat_return *back = &change->back;
    bool left = seat->until != UINT64_MAX;
    if (all->acts_on > number) /* what they answered is of another view */
        return false;
    if (!left && all->begun)
        return true;
    uint64_t least = left && seat->until > seat->from ? seat->until : seat->from + 1;
    least = all->begin > least ? all->begin : least;
    if (!left && back->known && back->margin < MARGIN_MAX) /* it was too little */
        back->margin *= 2;
    back->known = true;
    back->from = seat->from;
    back->until = seat->until;
    back->to = least < UINT64_MAX - back->margin ? least + back->margin : UINT64_MAX - 1;
    return false;
}

static enum dp_status carry_out(struct dp_client *client, struct seat_change *change, struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st;
    bool done = false;
    change->back = (struct seat_return){.margin = MARGIN_MIN};
    do {
        struct dp_view view = {0};
        struct dp_call_view all;
        st = agree(client, change, &view, &why);
        if (st == DP_OK)
            st = hand_over(client, change, &view, &all, &why);
        if (st == DP_OK)
            done = !change->join || !change->join->returns ||
                   is_back(change, &view.member[client->place.rank], view.number, &all);
        dp_view_clear(&view);
    } while (st == DP_OK && !done);
    return st == DP_OK ? DP_OK : dp_fail_wait(err, st, why.wait, "%s: %s", change->what, why.text);
}

/* ---- the calls ---- */

/* A newer view: handed to every shard, without waiting; or this client's place is another process's now. */
static void take_news(struct dp_client *client, const struct dp_view *view)
{
    const struct dp_client_place *place = &client->place;
    if (view->run != place->run || place->rank >= view->members)
        return;
    if (view->member[place->rank].incarnation != place->incarnation)
        lose_place(client, view);
    else if (keep(client, view, NULL) == DP_OK)
        for (uint32_t i = 0; i < client->shards; i++)
            dp_link_put_view(&client->link[i]);
}

static enum dp_status check_join(const struct dp_client *client, const struct dp_join *join,
                                 struct dp_error *err)
{
    if (!client->has_control || client->shards == 0)
        return dp_fail(err, DP_ARGUMENT, "join: this client was opened without %s",
                       client->has_control ? "shards" : "a control endpoint");
    if (join->run == 0 || join->members == 0 || join->members > DP_MEMBERS_MAX || join->rank >= join->members)
        return dp_fail(err, DP_ARGUMENT,
                       "join: run %" PRIu32 ", worker %" PRIu32 " of %" PRIu32
                       ": runs start at 1, a run has 1 to %u members, and ranks are below their number",
                       join->run, join->rank, join->members, DP_MEMBERS_MAX);
    struct dp_error why = {0};
    if (dp_mode_check(join->mode, join->slack, join->members, &why) != DP_OK)
        return dp_fail(err, DP_ARGUMENT, "join: %s", why.text);
    return DP_OK;
}

/* As random as the session's number is. */
static uint64_t draw_incarnation(struct dp_client *client)
{
    uint64_t drawn = dp_mix(client->session.id + dp_mix(++client->last_call));
    return drawn ? drawn : 1;
}

enum dp_status dp_client_join(struct dp_client *client, const struct dp_join *join, uint32_t timeout_ms,
                              struct dp_error *err)
{
    struct dp_client_place *place = &client->place;
    struct seat_change change = {
        .what = "join", .join = join, .end_ns = dp_awake_ns(&client->session.clock) + timeout_ms * MS_NS};
    enum dp_status st = dp_client_session_check_place(&client->session, change.what, err);
    if (st == DP_OK)
        st = check_join(client, join, err);
    if (st != DP_OK)
        return st;
    if (place->incarnation == 0 || place->run != join->run || place->rank != join->rank)
        *place = (struct dp_client_place){
            .run = join->run, .rank = join->rank, .incarnation = draw_incarnation(client)};
    place->members = join->members;
    st = place->seated ? DP_OK : dp_client_heartbeats_begin(client, timeout_ms, err);
    if (st == DP_OK)
        st = carry_out(client, &change, err);
    place->joined |= st == DP_OK;
    if (st == DP_OK)
        dp_client_view_watch_begin(client, take_news);
    place->mode = join->mode;
    place->slack = join->slack;
    return st;
}

enum dp_status dp_client_leave(struct dp_client *client, uint64_t until, uint32_t timeout_ms,
                               struct dp_error *err)
{
    struct seat_change change = {
        .what = "leave", .until = until, .end_ns = dp_awake_ns(&client->session.clock) + timeout_ms * MS_NS};
    enum dp_status st = dp_client_member_check(client, change.what, err);
    if (st != DP_OK)
        return st;
    if (until == UINT64_MAX)
        return dp_fail(err, DP_ARGUMENT, "leave: %" PRIu64 " is no step to leave before", until);
    if (dp_client_pushing(client))
        return dp_fail(err, DP_ARGUMENT, "leave: a push is not answered yet: wait for it first");
    return carry_out(client, &change, err);
}

uint64_t dp_client_joined_at(const struct dp_client *client)
{
    return client->place.from;
}

uint64_t dp_client_missed(const struct dp_client *client)
{
    return client->place.missed;
}

bool dp_client_was_let_leave(const struct dp_client *client)
{
    const struct dp_error *replaced = &client->session.replaced;
    return replaced->status == DP_REPLACED && replaced->wait.reason == DP_WAIT_VIEW;
}
