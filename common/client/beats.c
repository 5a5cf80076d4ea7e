#include "common/client/beats.h"

#include "common/base/bytes.h"
#include "common/client/ask_one.h"

#define MS_NS       UINT64_C(1000000)
#define IN_TIMEOUT  8u /* beats within the timeout, so that some may be lost */
#define EVERY_MS    1000u
#define PLACE_BYTES 8u

static struct dp_parcel *beat_of(const struct dp_client *client)
{
    const struct dp_client_place *place = &client->place;
    struct dp_parcel *parcel = dp_parcel_new(DP_REQUEST_BEAT, DP_REPLY_SILENCES);
    if (parcel) {
        parcel->request.beat =
            (struct dp_beat){.run = place->run, .rank = place->rank, .members = place->members};
        parcel->loose = true;
    }
    return parcel;
}

/* From when the register has it in its place, though a shard may keep it waiting before it has joined. What cannot be sent now for lack
 * of memory is sent later. */
static void look(struct dp_client *client, uint64_t now_ns)
{
    struct dp_client_beats *beats = &client->beats;
    if (!client->place.seated || now_ns < beats->due_ns || client->session.replaced.status != DP_OK)
        return;
    struct dp_parcel *parcel = beat_of(client);
    struct dp_call *call = dp_call_new(client, 0, 0);
    beats->due_ns = now_ns + beats->every_ns;
    if (beats->sent)
        dp_client_end(client, beats->sent);
    beats->sent = NULL;
    if (!parcel || !call) {
        dp_parcel_free(&parcel);
        dp_call_free(&call);
        return;
    }
    parcel->call = call;
    beats->sent = call;
    dp_client_adopt(client, call);
    dp_link_put(&client->link[client->shards], &parcel);
}

void dp_client_beats(struct dp_client *client, uint32_t timeout_ms)
{
    uint32_t every_ms = timeout_ms / IN_TIMEOUT < EVERY_MS ? timeout_ms / IN_TIMEOUT + 1 : EVERY_MS;
    client->beats.every_ns = timeout_ms > 0 ? every_ms * MS_NS : 0;
    client->beats.look = timeout_ms > 0 ? look : NULL;
}

static enum dp_status take_silences(struct dp_call *call, uint32_t server, const struct dp_parcel *parcel,
                                    struct dp_reply *reply, struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)reply;
    uint32_t members = parcel->request.beat.members;
    const struct dp_frame *frame = &(*message)->frame[1];
    if (frame->size != (size_t)members * PLACE_BYTES)
        return dp_fail(err, DP_INVALID, "has the silences of %u members in %zu bytes", members, frame->size);
    for (uint32_t rank = 0; call->bits && rank < members; rank++)
        call->bits[rank] = dp_load_u64le((const char *)frame->data + (size_t)rank * PLACE_BYTES);
    return DP_OK;
}

static enum dp_status ask(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                          struct dp_error *err)
{
    struct dp_parcel *parcel = beat_of(client);
    struct dp_call *call = dp_call_new(client, 0, timeout_ms);
    enum dp_status st = DP_NOMEM;
    if (!parcel || !call) {
        dp_call_free(&call);
        (void)dp_fail(err, st, "silences: no memory");
        goto done;
    }
    call->take = take_silences;
    call->bits = silent_ms;
    parcel->call = call;
    st = dp_client_ask(client, &client->link[client->shards], &parcel, "silences", timeout_ms, &call, err);
    if (st == DP_OK)
        dp_client_end(client, call);
done:
    dp_parcel_free(&parcel);
    return st;
}

enum dp_status dp_client_beats_begin(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err)
{
    if (client->beats.every_ns == 0)
        return DP_OK;
    enum dp_status st = ask(client, NULL, timeout_ms, err);
    client->beats.due_ns = dp_awake_ns(&client->session.clock) + client->beats.every_ns;
    return st;
}

enum dp_status dp_client_silences(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                                  struct dp_error *err)
{
    if (!client->place.joined || client->beats.every_ns == 0)
        return dp_fail(err, DP_ARGUMENT, "silences: this client %s",
                       client->place.joined ? "does not beat: call dp_client_beats before it joins"
                                            : "is no member of a run: call dp_client_join first");
    return ask(client, silent_ms, timeout_ms, err);
}
