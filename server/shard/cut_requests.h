/* Cut requests: a shard's part of a checkpoint (proto/README.md, server/checkpoint/README.md). One order at a time:
 *     begin: a write-back cycle -> cut: in a turn (server/durable/cut.h) -> finish: pushes that other shards have come here, too;
 *     a second finish with fewer of them gives the others up -> the copier copies link and journal -> copied: its part of the
 *     manifest -> end
 * Answers   Each request is answered at once, with how far the order is; its effect comes with the next turn. The
 *           coordinator asks again (look). All may be sent again.
 * Refused   Without a journal (durability none), and where the store is read-only.
 * Given up  An order is given up without a request for DP_CUT_SILENT_NS; if its hold would fill the journal
 *           or a full disk; if its link, copy or journal failed; if a drain or a later run overtakes it.
 *           Its link is removed and the journal released as soon as the copier does not read them. Answers
 *           give the reason until the next order begins.
 * Holds     The stage shows the parts that exist: a cut from IS_CUT to COPYING, a copier's job in COPYING
 *           (until the copier gives it back, even after the order's end), a manifest in COPIED.
 * Thread    The shard's. */
#ifndef DP_SHARD_CUT_REQUESTS_H
#define DP_SHARD_CUT_REQUESTS_H

#include "server/checkpoint/copier.h"
#include "server/durable/cut.h"

struct dp_replies;
struct dp_waiting;

#define DP_CUT_SILENT_NS UINT64_C(60000000000)

struct dp_cut_requests {
    struct dp_shard_base *base;
    const struct dp_replies *replies;
    struct dp_cut *cut;
    struct dp_write_back *write_back;
    const struct dp_journaling *journaling;
    const struct dp_steps *steps;
    struct dp_copier *copier; /* NULL: none */
    uint64_t store;           /* its id */
    bool read_only;
    enum dp_checkpoint_stage stage;
    uint64_t order; /* 0: there was none */
    uint64_t heard_ns, began_ns;
    uint64_t begin_lsn; /* of the order: preparing writes back all up to it */
    uint32_t number;    /* of the cut that was ordered last */
    uint32_t made;      /* number of the checkpoint that the store is to name; 0: none */
    char directory[DP_CHECKPOINT_DIRECTORY_MAX + 1];
    bool full, link;
    uint64_t rate;
    uint64_t step;                 /* t* */
    struct dp_copy_push *missing;  /* ascending */
    uint32_t missing_count, found; /* found: of the first ones, all are here */
    bool has_until;                /* waiting: nothing more is waited for */
    uint64_t until;                /* and all is here when the journal is durable up to it */
    struct dp_copy_job *job;       /* at the copier, or copied */
    bool job_ended;                /* it is back */
    struct dp_error why;           /* abandoned */
};

void dp_cut_requests_do(struct dp_cut_requests *requests, const struct dp_waiting *waiting, bool draining,
                        struct dp_error *err);
/* draining: an order is given up. */
void dp_cut_requests_turn(struct dp_cut_requests *requests, bool draining);
/* Whether the copier still reads the cut: the shard cannot be closed. */
bool dp_cut_requests_is_busy(const struct dp_cut_requests *requests);
/* In how many ms it wants another turn; UINT32_MAX: it does not. */
uint32_t dp_cut_requests_rest_ms(const struct dp_cut_requests *requests);
void dp_cut_requests_clear(struct dp_cut_requests *requests);

#endif
