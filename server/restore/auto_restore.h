/* Auto restore: servers that all start without a store build them from the cluster's last checkpoint, by
 * restore.h, all or none.
 * They communicate by files in DIRECTORY/restoring-<cluster's id>, where DIRECTORY is the cluster file's
 * checkpoint.to:
 *     server 0:    last checkpoint -> plan -> builds -> every server's note says "built" -> exchanges -> the
 *     files are removed
 *     the others:  plan -> build -> note "built" -> the first server answers: their start exchanges
 *     (restore_exchange.h) a server that has its store, and waits for the first one: note "store"
 * Promise   Nothing is restored while a server has a store: a note "store" ends the restore, by that server's
 *           name. A process that is killed goes on when it is started again, with the same plan. Notes of
 *           before server 0's present process do not count: their servers put them again. Server 0 decides by
 *           its exchange, as in any restore.
 * Wait      For the other servers, without a deadline, as servers wait for the first one; the log names them
 *           every 10 s.
 * Thread    One, before the process has others. Signals end it, as a kill does. object: any.
 * Failure   Those of restore.h; DP_GENERATION: another server has its store. */
#ifndef DP_RESTORE_AUTO_RESTORE_H
#define DP_RESTORE_AUTO_RESTORE_H

#include "common/config/cluster.h"

/* No store, no register, and no exchange that was interrupted. */
bool dp_auto_restore_is_empty(const struct dp_cluster *cluster, uint32_t server);
/* The last checkpoint of this cluster in its directory whose manifest can be read; the log names later ones
 * that are damaged. DP_NOT_FOUND: there is none. DP_CORRUPT: all are. DP_UNSUPPORTED: a later one is of
 * another build. */
enum dp_status dp_auto_restore_find(const struct dp_cluster *cluster, uint32_t *number, struct dp_error *err);
/* Of server 0, which is empty. */
enum dp_status dp_auto_restore_first(const struct dp_cluster *cluster, uint32_t number, struct dp_error *err);
/* Of server 0, which is empty and is to begin so (--replace-store): waits until one of the others says that
 * it has its store. DP_EXISTS: none has, so that nothing but the checkpoint is left. */
enum dp_status dp_auto_restore_check_others(const struct dp_cluster *cluster, uint32_t number,
                                            struct dp_error *err);
/* Of another server, which is empty. Returns once the first server answers. */
enum dp_status dp_auto_restore_other(const struct dp_cluster *cluster, uint32_t server, struct dp_error *err);
/* Of a server that has a store: if the others restore themselves, they learn of it. */
void dp_auto_restore_object(const struct dp_cluster *cluster, uint32_t server);
/* Of server 0, which has its store: a plan that is left is over. */
enum dp_status dp_auto_restore_drop(const struct dp_cluster *cluster, struct dp_error *err);

#endif
