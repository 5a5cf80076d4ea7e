/* MPI reducer: a reducer (reducer.h) over all ranks that mpirun started. The only place that sees MPI.
 *     open (MPI_Init) -> ... -> close (MPI_Finalize), or end_job
 * Meet      Each rank reports to rank 0, which answers when all have reported. They look every 100 us and
 *           sleep in between. So a waiting rank leaves the processor to one that computes; MPI's own waits
 *           do not. The sum starts after the meeting, so its time has no waiting for others in it.
 * Promise   Every wait ends: meet by its limit, after which rank 0 names the missing ranks; MPI's blocking
 *           calls by the watchdog. If a rank's process dies, mpirun ends the others.
 * Thread    The one that opened it; the watchdog's inside.
 * Failure   open: DP_IO. It ends the process by itself where MPI cannot start. */
#ifndef DP_ALLREDUCE_MPI_REDUCER_H
#define DP_ALLREDUCE_MPI_REDUCER_H

#include "worker/allreduce/reducer.h"

struct dp_mpi_reducer;

enum dp_mpi_sum {
    DP_MPI_SUM_IN_ORDER, /* (((rank 0 + rank 1) + rank 2) + ...): by MPI_Alltoall, a loop, MPI_Allgather */
    DP_MPI_SUM_ALLREDUCE /* by MPI_Allreduce, in the order that MPI chooses */
};

/* Takes MPI's own arguments out of argv. *reducer: lent until close. */
enum dp_status dp_mpi_reducer_open(int *argc, char ***argv, struct dp_mpi_reducer **out,
                                   struct dp_reducer *reducer, struct dp_error *err);
/* Once the settings are known: how it adds, and how long a sum or another call of MPI may take. */
void dp_mpi_reducer_set(struct dp_mpi_reducer *reducer, enum dp_mpi_sum kind, uint32_t timeout_ms);
/* For dp_reducer.how. */
const char *dp_mpi_sum_name(enum dp_mpi_sum kind);
/* Waits for all ranks. */
void dp_mpi_reducer_close(struct dp_mpi_reducer **reducer);
/* Ends all ranks of the job; does not return. */
__attribute__((noreturn)) void dp_mpi_reducer_end_job(struct dp_mpi_reducer *reducer, int code);

#endif
