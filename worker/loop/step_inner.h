/* Step, from inside: shared by step.c (computing and pushing), step_open.c (the parts of a loop),
 * step_fetch.c (reading and pulling) and step_leased.c (the same with leased work). */
#ifndef DP_LOOP_STEP_INNER_H
#define DP_LOOP_STEP_INNER_H

#include "worker/context/weights.h"
#include "worker/coordinate/work_leases.h"
#include "worker/loop/delays.h"
#include "worker/loop/gradients.h"
#include "worker/loop/hogwild.h"
#include "worker/loop/in_flight.h"
#include "worker/loop/skipped_steps.h"
#include "worker/loop/step.h"
#include "worker/read/reader.h"
#include "worker/schedule/rate.h"
#include "worker/schedule/shares.h"

/* F minibatches whose parameters were pulled together. */
struct dp_loop_fetch {
    struct dp_weights *weights;
    struct dp_batch **batch; /* [fetch_every] */
    uint32_t count;
    uint64_t step;   /* of the run, the last of them */
    uint64_t issued; /* pushes of this process before its pull */
    struct dp_ticket ticket;
};

/* A minibatch that was started and is not settled (finished and pushed) yet. */
struct dp_loop_flight {
    struct dp_loop_fetch *fetch;
    uint32_t i; /* of the fetch */
    struct dp_gradients *gradients;
    float *const *written;
    uint64_t begun_ns;
};

struct dp_loop {
    struct dp_job *job;
    struct dp_progress *progress;
    struct dp_worker_stats *stats;
    const struct dp_cluster_training *training;
    const char *scale; /* dp_advice_scale */
    struct dp_share share;
    struct dp_rounds rounds;
    struct dp_skipped skipped;
    struct dp_late late;
    struct dp_rate rate;
    double loss_unit;                 /* of a loss of the model, in the unit of reports */
    uint64_t positions, examples_all; /* examples: of all workers */
    struct dp_work_leases *leases;    /* NULL: this worker has a share of its own */
    uint64_t wanted;                  /* of them: minibatches that the reader has or reads */
    uint64_t ask_at_ns;               /* for more, not before */
    bool others_ended;                /* all of the epoch is done, what this worker holds included */
    uint64_t issued;                  /* pushes of this process, */
    uint64_t stands_on;               /* and those that were when the current push was pulled for */
    uint32_t owner;                   /* the worker whose share has the minibatches of the current push */
    uint32_t fetch_every, push_every; /* at most `positions` */
    bool overlap;                     /* the next fetch is pulled before the push of this one */
    bool accumulates;                 /* no local step between the minibatches of a fetch */
    struct dp_loop_fetch fetch[2];
    const struct dp_position *position;
    struct dp_stats_history *history;
    const struct dp_exchange *exchange; /* or NULL */
    struct dp_gradients *gradients[2];  /* the second where steps overlap on a device */
    struct dp_hogwild *hogwild;         /* NULL: one thread computes */
    struct dp_delays delays;
    uint64_t settled_ns;             /* the last minibatch */
    struct dp_loop_flight flight[2]; /* oldest first */
    uint32_t flying;
    bool is_device; /* start only issues a step */
    bool flies;     /* a step is started before the one before it is finished */
    struct dp_reader *reader;
    uint32_t examples; /* of the push that is being gathered, */
    uint32_t passed;   /* and of its minibatches that are not computed (skipped_steps.h) */
    double loss_sum;   /* over `examples` */
    struct dp_in_flight pushes;
    uint32_t epoch;
    uint64_t begun_ns;          /* the epoch under way, */
    double seconds_before;      /* in addition to these of an earlier process */
    struct dp_step_timer watch; /* of the epoch under way */
};

/* As shown to users. */
static inline uint32_t dp_loop_shown_epoch(const struct dp_loop *loop)
{
    return loop->training->first_epoch + loop->epoch + 1;
}

/* Whether the push of a minibatch is not to be made any more: an earlier process of this worker made it, or
 * the steps went on without it. */
bool dp_loop_is_done(const struct dp_loop *loop, uint32_t epoch, uint64_t number);
/* Whether a minibatch is done or skipped. Of a loop; called by the reader's thread. */
bool dp_loop_needs_no_reading(const void *loop, uint32_t epoch, uint64_t number);
/* Skips a minibatch, and returns how many examples it has. */
uint32_t dp_loop_leave(struct dp_loop *loop, uint64_t number);
/* Reads the minibatches of fetch `index` of this epoch that are neither done nor skipped, and issues their
 * pull. */
enum dp_status dp_loop_fetch_start(struct dp_loop *loop, uint64_t index, struct dp_error *err);
/* Waits for its rows; hears where the servers are (skipped_steps.h). */
enum dp_status dp_loop_fetch_wait(struct dp_loop *loop, struct dp_loop_fetch *fetch, struct dp_error *err);
/* Where the first server gives minibatches (step_leased.c). An epoch begins. */
void dp_loop_leased_begin(struct dp_loop *loop);
/* Reads up to fetch_every minibatches, as many as are held, and issues their pull; may ask for more. */
enum dp_status dp_loop_leased_start(struct dp_loop *loop, struct dp_loop_fetch *fetch, struct dp_error *err);
/* Whether others have done all that this worker holds of the epoch, and it has computed no part of a push. */
bool dp_loop_leased_ended(const struct dp_loop *loop);
/* Then: computes none of it. */
enum dp_status dp_loop_leased_give_up(struct dp_loop *loop, struct dp_error *err);
/* Nothing is left to begin: waits until there is again, or the epoch is over. */
enum dp_status dp_loop_leased_await(struct dp_loop *loop, bool *over, struct dp_error *err);
/* Waits until at most `leave` pushes are unanswered. */
enum dp_status dp_loop_wait_pushes(struct dp_loop *loop, uint32_t leave, struct dp_error *err);
/* Gives its minibatches back to the reader. */
void dp_loop_fetch_release(struct dp_loop *loop, struct dp_loop_fetch *fetch);

#endif
