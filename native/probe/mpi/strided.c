#include "probe/mpi/strided.h"

#include <string.h>

#include "probe/mpi/area.h"

void strided_gather(const struct strided *strided, unsigned char *message) {
    const unsigned char *from = strided->memory;
    for (size_t i = 0; i < strided->elements; i++, from += strided->stride)
        memcpy(message + i * ELEMENT, from, ELEMENT);
    memcpy(message + strided->elements * ELEMENT, from, strided->rest);
}

void strided_scatter(const struct strided *strided, const unsigned char *message) {
    unsigned char *to = strided->memory;
    for (size_t i = 0; i < strided->elements; i++, to += strided->stride)
        memcpy(to, message + i * ELEMENT, ELEMENT);
    memcpy(to, message + strided->elements * ELEMENT, strided->rest);
}

/* A vector as programs have it. */
static int make_vector(struct strided *strided) {
    const int code = MPI_Type_vector((int)strided->elements, 1, (int)(strided->stride / ELEMENT), MPI_DOUBLE,
                                     &strided->type);
    return code == MPI_SUCCESS ? MPI_Type_commit(&strided->type) : code;
}

/* Elements that lie apart, and the bytes of a size that is no multiple of them. */
static int make_type(struct strided *strided) {
    if (strided->rest == 0)
        return make_vector(strided);
    MPI_Datatype elements = MPI_DATATYPE_NULL;
    const int lengths[] = {1, (int)strided->rest};
    const MPI_Aint places[] = {0, (MPI_Aint)(strided->elements * strided->stride)};
    int code = MPI_Type_create_hvector((int)strided->elements, ELEMENT, (MPI_Aint)strided->stride, MPI_BYTE,
                                       &elements);
    if (code != MPI_SUCCESS)
        return code;
    const MPI_Datatype types[] = {elements, MPI_BYTE};
    code = MPI_Type_create_struct(2, lengths, places, types, &strided->type);
    MPI_Type_free(&elements);
    return code == MPI_SUCCESS ? MPI_Type_commit(&strided->type) : code;
}

int strided_open(struct strided *strided, const struct visit *visit, bool filled, struct failure *failure) {
    const struct mpi_link *link = visit->link;
    *strided = (struct strided){.stride = (size_t)visit->parameter * ELEMENT,
                                .elements = visit->size / ELEMENT,
                                .rest = visit->size % ELEMENT,
                                .type = MPI_DATATYPE_NULL};
    strided->memory = area_of((strided->elements + 1) * strided->stride, failure);
    if (strided->memory == NULL)
        return -1;
    if (filled)
        strided_scatter(strided, visit->buffer);
    const int code = make_type(strided);
    return code == MPI_SUCCESS ? 0 : mpi_failed(link, code, failure);
}

void strided_close(struct strided *strided) {
    if (strided->type != MPI_DATATYPE_NULL)
        MPI_Type_free(&strided->type);
}
