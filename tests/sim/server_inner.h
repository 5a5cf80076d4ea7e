/* Server, inside: what its journal's side (server_journal.c) needs of it. */
#ifndef DP_TESTS_SIM_SERVER_INNER_H
#define DP_TESTS_SIM_SERVER_INNER_H

#include "tests/lib/shard_bed.h"
#include "tests/sim/copier.h"
#include "tests/sim/mail.h"
#include "tests/sim/server.h"
#include "tests/sim/sim_store.h"

struct sim_server {
    struct sim_world *world;
    uint32_t index;
    uint64_t life;    /* of events: those of an earlier one are void */
    uint64_t by_hand; /* the life that somebody is about to end */
    bool up, clean, draining, stops, stopped;
    bool sick; /* an operation of its disk is to fail */
    struct shard_bed bed;
    struct sim_store *rows;
    struct sim_copier *copier; /* NULL: no checkpoints are made */
    struct dp_journal *journal;
    struct sim_inbox inbox;
    uint64_t turn_at; /* the earliest that is asked for; UINT64_MAX: none */
    bool commit_asked, sync_asked, claim_asked;
    uint64_t claim_lsn;              /* the last when a claim was asked for */
    uint32_t rounds;                 /* of this life */
    struct dp_journal_options given; /* of the opening under way */
};

/* Of the world of now: what a shard calls knows nothing of the simulation. NULL: of a restore. */
struct sim_server *sim_server_of_disk(const struct dp_disk *disk);
struct sim_server *sim_server_of_journal(const struct dp_journal *journal);
/* A turn of its shard so soon, if none comes sooner. */
void sim_server_ask_turn(struct sim_server *server, uint64_t delay_ns);
/* It dies, with or without power, and is started again later. */
void sim_server_crash(struct sim_server *server, bool power);

#endif
