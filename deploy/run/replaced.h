/* Replaced: the losses of a run with --replace-store, listed before any server starts: afterwards there is
 * no way back.
 * How       The servers' own rules (server/identity.h) over the stores and the register's file as they lie
 *           there. The servers judge again, and name the damage. */
#ifndef DP_RUN_REPLACED_H
#define DP_RUN_REPLACED_H

#include "common/config/cluster.h"

#include <stdio.h>

struct dp_folder;

/* How many stores and registers are replaced; each is a line. */
uint32_t dp_replaced_tell(const struct dp_folder *folder, const struct dp_cluster *cluster, FILE *to);

#endif
