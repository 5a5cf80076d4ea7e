/* Server: one shard's process and its machine: the real shard and journal, on a simulated disk and store.
 *     new (up) -> messages, turns, commits -> crash, restart ... -> drain -> free
 * The journal's commit thread is played by events: dp_journal_commit and dp_journal_sync, as the shard calls them
 * (tests/lib/journal_seam.h), ask for a round, and the round runs a little later; meanwhile turns go on. So does the claim of
 * an idle journal.
 * Promise   What has lost its power does and says nothing more. Thread: one. */
#ifndef DP_TESTS_SIM_SERVER_H
#define DP_TESTS_SIM_SERVER_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

struct sim_server;
struct sim_store;
struct dp_sim_disk;

struct sim_server *sim_server_new(struct sim_world *world, uint32_t index);
void sim_server_free(struct sim_server **server);
void sim_server_receive(struct sim_server *server, const struct dp_peer *from, struct dp_message **message);
bool sim_server_is_up(const struct sim_server *server);

/* What a plan's faults do. Those that leave it unusable start it again some time later. */
void sim_server_dies(struct sim_server *server, bool power);
void sim_server_loses_power_at(struct sim_server *server, uint64_t operation);
void sim_server_loses_power_at_job(struct sim_server *server, bool marks);
void sim_server_read_fails(struct sim_server *server);
void sim_server_write_fails(struct sim_server *server, uint64_t choice);
void sim_server_sync_fails(struct sim_server *server, uint64_t choice);
void sim_server_disk_is_full(struct sim_server *server);
void sim_server_restart(struct sim_server *server); /* drained first */
/* Drains and stays closed. */
void sim_server_stop(struct sim_server *server);
bool sim_server_is_stopped(const struct sim_server *server);
void sim_server_start(struct sim_server *server); /* a stopped one */
/* Before it is started: what a restore puts into its store; and that its journal is on this disk, taken over. */
struct sim_store *sim_server_store(struct sim_server *server);
void sim_server_adopt(struct sim_server *server, struct dp_sim_disk *journal);
/* Nothing fails any more. */
void sim_server_heal(struct sim_server *server);

#endif
