/* Reply: the answer of a server, as a plain struct, and its frames.
 * Decoding (on the client) trusts a server no more than a server trusts a client. */
#ifndef DP_WIRE_REPLY_H
#define DP_WIRE_REPLY_H

#include "common/base/histogram.h"
#include "common/wire/request.h"

enum dp_reply_kind {
    DP_REPLY_NONE, /* a status only */
    DP_REPLY_WELCOME,
    DP_REPLY_TABLE_CREATED,
    DP_REPLY_PULLED,
    DP_REPLY_PUSHED,
    DP_REPLY_STATUS,
    DP_REPLY_NOTES,
    DP_REPLY_POSITIONS, /* frame 1: u64 words of bits, how many the asker knows */
    DP_REPLY_REGISTER,  /* frame 1: the value's bytes */
    DP_REPLY_VIEW,
    DP_REPLY_SILENCES,   /* frame 1: u64[members], ms */
    DP_REPLY_LEASED,     /* frame 1: the numbers, u64s */
    DP_REPLY_CHECKPOINT, /* dp_checkpoint_frames */
};

#define DP_COUNTERS_MAX      128u
#define DP_COUNTER_NAME_MAX  47u
#define DP_STATUS_TABLES_MAX 1024u
#define DP_HISTOGRAMS_MAX    8u

struct dp_counter {
    char name[DP_COUNTER_NAME_MAX + 1];
    uint64_t value;
};

struct dp_table_status {
    struct dp_table_spec spec;
    uint64_t rows, bytes;
};

/* Heap memory of its own, which dp_reply_clear frees. */
struct dp_status_report {
    uint32_t shard, shards;
    uint32_t tables, counters;
    struct dp_table_status *table;
    struct dp_counter *counter;
    uint32_t histograms;
    struct dp_histogram *histogram;
    uint64_t store; /* id of the shard's store; 0: it has none */
};

struct dp_reply {
    enum dp_reply_kind kind;
    uint64_t id, session, cluster, sequence;
    uint64_t generation, history; /* of the server's stores; 0, 0: not known yet */
    enum dp_status status;
    char reason[DP_REASON_MAX + 1]; /* of a status other than OK */
    struct dp_wait wait; /* of AGAIN, STOPPING, TIMEOUT, HELD; of REPLACED: VIEW, it was let leave */
    uint64_t silent_ms;  /* of HELD: since the shard last heard of the member that is waited for */
    uint64_t too_old;    /* of DP_TOO_OLD, and welcome: all unknown streams up to this */

    uint64_t first, last, boot, stream; /* welcome */
    uint32_t window;
    uint64_t store;              /* welcome: of a shard; 0: none */
    uint64_t register_id;        /* welcome: 0: none; register */
    bool existed;                /* table_created */
    uint64_t applied;            /* pulled: frames 1.. of the message are the sections' values */
    uint64_t lsn;                /* pulled: of the shard's journal; the rows show all of it */
    uint32_t held_ms;            /* pulled: how long the consistency mode held it */
    uint64_t open;               /* pulled, in a synchronous run: the step that the rows are of */
    uint64_t staleness;          /* pushed */
    bool repeated;               /* pushed */
    bool dropped;                /* pushed: its step had been closed without it; nothing was applied */
    uint64_t gap;                /* pushed: steps ahead of the slowest member */
    uint64_t rows, changed_rows; /* pushed: of its rows, those changed since the pull; 0, 0: not measured */
    float rate;                  /* pushed: at which it was applied; 0: it was not, or not yet */
    uint64_t clock_ms;           /* welcome of shard 0: since 1970, by its clock; 0: not given */
    uint32_t run;                /* welcome of a shard: of the members that it knows; 0: none */
    uint64_t version;            /* register: 0: never set; view: the number the shard acts on */
    bool begun;                  /* view: of a member that returns (downpour.proto) */
    uint64_t begin;              /* view: likewise */
    bool won;                    /* register: of a set (downpour.proto) */
    bool whole;                  /* register: a copy of all of it */
    enum dp_lease_state lease;   /* leased */
    uint32_t wait_ms;            /* leased */
    uint64_t done;               /* leased */
    struct dp_checkpoint_state checkpoint;
    struct dp_status_report report;     /* status */
    uint32_t notes;                     /* notes: frames 1.. are their bytes */
    char (*note)[DP_NOTE_NAME_MAX + 1]; /* heap: dp_reply_clear */
    uint64_t *age_ms;                   /* [notes], heap, since each came to the server; NULL: not given */
};

enum dp_status dp_reply_decode(const struct dp_message *message, struct dp_reply *out, struct dp_error *err);
/* Takes over the frames (sections' values, notes' bytes), also on failure. */
enum dp_status dp_reply_encode(const struct dp_reply *reply, struct dp_frame *frames, uint32_t frame_count,
                               struct dp_message **out, struct dp_error *err);
/* Frees the heap parts (report, note). */
void dp_reply_clear(struct dp_reply *reply);

#endif
