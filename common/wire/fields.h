/* Fields: lists of the fields with the same name in a generated struct and in ours. Encoder and decoder
 * copy them by the same list, so a new field is one word here. Private to this room.
 *     DP_WIRE_HELLO(DP_WIRE_COPY)        from, to: pointers to the two structs */
#ifndef DP_WIRE_FIELDS_H
#define DP_WIRE_FIELDS_H

#define DP_WIRE_COPY(field) to->field = from->field;

/* requests */
#define DP_WIRE_REQUEST(X)  X(id) X(cluster) X(generation) X(history) X(session) X(sequence) X(shard)
#define DP_WIRE_HELLO(X)    X(want_stream) X(next_sequence) X(stream_above)
#define DP_WIRE_MEMBER(X)   X(run) X(rank) X(view) X(incarnation) X(step) X(examples)
#define DP_WIRE_VIEW_PUT(X) X(returns) X(rank)
#define DP_WIRE_LEASE(X)    X(total) X(rank) X(want) X(held) X(done) X(tells)
#define DP_WIRE_PUSH(X)                                                                                      \
    X(stream) X(number) X(rate) X(pulled_at) X(measured) X(pulled_lsn) X(by_staleness) X(examples)

/* replies */
#define DP_WIRE_REPLY(X)    X(id) X(session) X(generation) X(history) X(cluster) X(sequence) X(silent_ms)
#define DP_WIRE_WAIT(X)     X(subject) X(done) X(total)
#define DP_WIRE_PULLED(X)   X(applied) X(lsn) X(held_ms) X(open)
#define DP_WIRE_PUSHED(X)   X(staleness) X(repeated) X(dropped) X(gap) X(rows) X(changed_rows) X(rate)
#define DP_WIRE_REGISTER(X) X(version) X(register_id) X(won) X(whole)
#define DP_WIRE_WELCOME(X)                                                                                   \
    X(first) X(last) X(boot) X(stream) X(window) X(too_old) X(register_id) X(store) X(run) X(clock_ms)

#endif
