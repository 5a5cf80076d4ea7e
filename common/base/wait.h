/* Wait: why a request waits, or has to be sent again, as data: next to a status (AGAIN, STOPPING, TIMEOUT)
 * in a Reply, and in the dp_error that the client library gives. Programs decide on this and never on the
 * words next to it. Numbers go on the wire: add, never renumber. A number that this build does not know
 * reads as NONE. The sign says how a client may read a repeated reason. NEVER: as nothing, its timeout goes
 * on. MOVES: the server is at work whenever done or total changed. ALWAYS: the server obeys a rule; each
 * repetition shows life.
 *   reason      waiting request: what it waits for                           subject, done and total (0: none)
 *   STORE       a pull or push: rows that are being read from the store
 *   ROOM        a pull or push: room in the row cache's budget
 *   DISK        a push: a slow or full disk, or a journal that is full until
 *               rows are written back; an opening: disk space
 *   MARK        a request that needs a mark which is being made durable       subject: the table's id; 0: the journal's mark
 *   STREAMS     a hello: streams being reserved; a push: its stream is new    subject: the stream
 *               and the shard takes no more new ones at once, or not yet
 *   GAP         a push: its number is far ahead of one that is missing        subject: the stream
 *   QUEUE       a request: a queue of the server is full
 *   OPENING     all requests: the server opens its store
 *   RECOVERING  all requests: the server replays its journal                  subject: 1 checked, 2 replayed; bytes
 *   STOPPING    all requests: the server shuts down
 *   REGISTER    all requests: the server waits for the register
 *   FAULT       a request: memory, or a disk that works
 *   STEP        a pull that the mode blocks, next to HELD; a push             subject: rank of the member waited for; steps that it
 *               of a synchronous step that is not open or is being committed; has finished, and must have
 *               a request that would show a step commit that is not durable yet
 *   VIEW        a pull or push: its view, which the shard does not have yet;  subject: run; the shard's view, and the one named
 *               next to REPLACED: a view that has the member again, which left
 *   PLACE       a request: it is meant for another shard, which was at this     subject: the shard that is here
 *               address before
 *   UNREAD      a pull: earlier answers that its client, or all clients,      total: bytes of its answer
 *               have not read yet */
#ifndef DP_BASE_WAIT_H
#define DP_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define DP_WAIT_MAP(X)                                                                                       \
    X(NONE, 0, NEVER, "nothing that is known")                                                               \
    X(STORE, 1, NEVER, "rows to be read from the store")                                                     \
    X(ROOM, 2, NEVER, "room in the row cache")                                                               \
    X(DISK, 3, NEVER, "a disk that is slow or full")                                                         \
    X(MARK, 4, NEVER, "a mark to be made durable")                                                           \
    X(STREAMS, 5, NEVER, "streams to be reserved")                                                           \
    X(GAP, 6, ALWAYS, "an earlier push of its stream")                                                       \
    X(QUEUE, 7, NEVER, "a place in a queue")                                                                 \
    X(OPENING, 8, ALWAYS, "the store to be opened")                                                          \
    X(RECOVERING, 9, MOVES, "the journal to be replayed")                                                    \
    X(STOPPING, 11, NEVER, "the server to be started again")                                                 \
    X(REGISTER, 12, NEVER, "the register")                                                                   \
    X(FAULT, 13, NEVER, "memory, or a disk that works")                                                      \
    X(STEP, 14, ALWAYS, "another member of the run to come as far")                                          \
    X(VIEW, 15, NEVER, "the list of the run's members")                                                      \
    X(UNREAD, 16, NEVER, "earlier answers to be read")                                                       \
    X(PLACE, 17, NEVER, "the shard's address")

enum dp_wait_reason {
#define DP_WAIT_ENUM(name, number, sign, text) DP_WAIT_##name = number,
    DP_WAIT_MAP(DP_WAIT_ENUM)
#undef DP_WAIT_ENUM
};

enum dp_wait_sign { DP_SIGN_NEVER, DP_SIGN_MOVES, DP_SIGN_ALWAYS };

struct dp_wait {
    enum dp_wait_reason reason;
    uint64_t subject, done, total;
};

/* "ROOM", as metrics and notes have it. */
const char *dp_wait_name(enum dp_wait_reason reason);
/* What is waited for: "room in the row cache". */
const char *dp_wait_text(enum dp_wait_reason reason);
enum dp_wait_sign dp_wait_sign(enum dp_wait_reason reason);
/* Read off the wire. */
enum dp_wait_reason dp_wait_from_number(uint32_t number);
bool dp_wait_same(const struct dp_wait *a, const struct dp_wait *b);

#endif
