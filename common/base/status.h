/* Status: every failure this program can name, and the text that goes with one.
 * Numbers go on the wire and into logs: add, never renumber.
 * The class says which side acts: RETRY the caller, later; CALLER mends its request, file or flag; LOCAL
 * this process sheds load or is given resources; FATAL the shard or process stops.
 * Thread    Everything here may be called from any thread; a dp_error belongs to its caller. */
#ifndef DP_BASE_STATUS_H
#define DP_BASE_STATUS_H

#include "common/base/wait.h"

#define DP_STATUS_MAP(X)                                                                                     \
    X(OK, 0, NONE, "ok")                                                                                     \
    X(AGAIN, 1, RETRY, "busy, try again")                                                                    \
    X(TIMEOUT, 2, RETRY, "deadline passed")                                                                  \
    X(UNAVAILABLE, 3, RETRY, "peer not reachable")                                                           \
    X(STOPPING, 4, RETRY, "shutting down")                                                                   \
    X(SESSION, 5, RETRY, "session unknown, say hello first")                                                 \
    X(ORDER, 6, RETRY, "an earlier request of this session is missing")                                      \
    X(BEHIND, 7, RETRY, "the disk has to catch up")                                                          \
    X(HELD, 8, RETRY, "held until other members have come as far")                                           \
    X(INVALID, 10, CALLER, "request breaks the protocol")                                                    \
    X(ARGUMENT, 11, CALLER, "bad argument")                                                                  \
    X(DATA, 12, CALLER, "bad input data")                                                                    \
    X(NOT_FOUND, 13, CALLER, "not found")                                                                    \
    X(EXISTS, 14, CALLER, "exists with other properties")                                                    \
    X(GENERATION, 15, CALLER, "belongs to another cluster or generation")                                    \
    X(VERSION, 16, CALLER, "protocol version not spoken here")                                               \
    X(NOT_FINITE, 17, CALLER, "value is NaN or infinite")                                                    \
    X(UNSUPPORTED, 18, CALLER, "not supported")                                                              \
    X(TOO_OLD, 19, CALLER, "push number lies below the remembered window")                                   \
    X(NOMEM, 20, LOCAL, "out of memory")                                                                     \
    X(IO, 21, LOCAL, "disk or network operation failed")                                                     \
    X(FULL, 22, LOCAL, "budget used up")                                                                     \
    X(IN_USE, 23, CALLER, "another process has it open")                                                     \
    X(REPLACED, 24, CALLER, "another process took its place")                                                \
    X(PARTIAL, 25, CALLER, "a restored checkpoint has the push on some shards only")                         \
    X(CORRUPT, 30, FATAL, "stored bytes fail their check")                                                   \
    X(UNCLEAN, 31, FATAL, "store was not closed cleanly")                                                    \
    X(INTERNAL, 32, FATAL, "internal error")

#define DP_MUST_USE __attribute__((warn_unused_result)) /* of a function; gcc knows another word for a type */
#if defined(__clang__)
#define DP_MUST_USE_TYPE DP_MUST_USE
#else
#define DP_MUST_USE_TYPE [[nodiscard]]
#endif

/* What a function returns of these must be used, or be cast to void. */
__extension__ enum DP_MUST_USE_TYPE dp_status {
#define DP_STATUS_ENUM(name, number, class, text) DP_##name = number,
    DP_STATUS_MAP(DP_STATUS_ENUM)
#undef DP_STATUS_ENUM
};

enum dp_status_class { DP_CLASS_NONE, DP_CLASS_RETRY, DP_CLASS_CALLER, DP_CLASS_LOCAL, DP_CLASS_FATAL };

#define DP_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* What went wrong, for a person: cause first, remedy last. The caller's memory; reporting cannot fail.
 * Starts out as {0}. */
struct dp_error {
    enum dp_status status;
    struct dp_wait wait; /* of AGAIN, STOPPING, TIMEOUT, UNAVAILABLE: what for, where that is known */
    char text[504];
};

/* Name of a status as logs show it ("AGAIN"), or "UNKNOWN" for a number this build does not know. */
const char *dp_status_name(int status);
/* One sentence of a status. */
const char *dp_status_text(int status);
enum dp_status_class dp_status_class(int status);
/* The status with which a server answers its own failure: what the server lacks (class LOCAL: memory, room, a disk
 * that works) becomes AGAIN, every other status stays. The text keeps the cause. */
enum dp_status dp_status_answered(enum dp_status status);
/* What an answer of this error says that the client waits for: as it is, else what its status says. */
struct dp_wait dp_wait_answered(const struct dp_error *err);
/* How a process ends, for the launcher or supervisor that started it (deploy/docs/operations.md). */
enum { DP_EXIT_DONE = 0, DP_EXIT_FAILED = 2, DP_EXIT_RETRY = 3 };
/* DONE for DP_OK. RETRY where the same command may succeed later: servers are out of reach, or a signal
 * stopped it. FAILED: it would fail in the same way again. */
int dp_status_exit(enum dp_status status);
/* A status read off the wire: one this build knows, else DP_INTERNAL. */
enum dp_status dp_status_from_number(int number);

/* Sets *err (NULL is allowed) and returns `why`. */
enum dp_status dp_fail(struct dp_error *err, enum dp_status why, const char *format, ...) DP_PRINTF(3, 4);
/* The same, and says what is waited for. */
enum dp_status dp_fail_wait(struct dp_error *err, enum dp_status why, struct dp_wait wait, const char *format,
                            ...) DP_PRINTF(4, 5);
/* Puts context in front of the text that is there ("context: text") and returns `why`; what is waited for stays. */
enum dp_status dp_wrap(struct dp_error *err, enum dp_status why, const char *format, ...) DP_PRINTF(3, 4);

/* A fact of this program, not of its input: past validation only. Stays on in release builds. */
#define DP_ASSERT(fact) ((fact) ? (void)0 : dp_assert_failed(#fact, __FILE__, __LINE__))
__attribute__((noreturn)) void dp_assert_failed(const char *fact, const char *file, int line);

#endif
