#include "probe/mpi/link.h"

int mpi_failed(const struct mpi_link *link, int code, struct failure *failure) {
    char said[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(code, said, &length);
    return failure_set(failure, "mpi", link->peer_name, "the exchange with %s failed: %.300s",
                       link->peer_name, said);
}

static int send_command(void *context, const unsigned char *bytes, size_t length, struct failure *failure) {
    const struct mpi_link *link = context;
    int code = MPI_SUCCESS;
    for (int rank = link->peer; rank <= link->last_peer && code == MPI_SUCCESS; rank++)
        code = MPI_Send(bytes, (int)length, MPI_BYTE, rank, TAG_CONTROL, link->comm);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

static int receive_command(void *context, unsigned char *bytes, size_t length, struct failure *failure) {
    const struct mpi_link *link = context;
    int code = MPI_SUCCESS;
    for (int rank = link->peer; rank <= link->last_peer && code == MPI_SUCCESS; rank++)
        code = MPI_Recv(bytes + (size_t)(rank - link->peer) * length, (int)length, MPI_BYTE, rank,
                        TAG_CONTROL, link->comm, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

struct channel mpi_channel(struct mpi_link *link) {
    return (struct channel){.link = link,
                            .peer = link->peer_name,
                            .peers = (size_t)(link->last_peer - link->peer) + 1,
                            .send = send_command,
                            .receive = receive_command};
}
