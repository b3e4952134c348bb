#include "emulate/emulation.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/payload.h"
#include "core/watchdog.h"

int emulation_failed(struct emulation *emulation, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    failure_set(emulation->failure, "pattern", "", "rank %d: %s", emulation->rank, message);
    return MPI_ERR_OTHER;
}

void emulation_compute(struct emulation *emulation, uint64_t lasts_ns) {
    struct notes *notes = &emulation->notes[emulation->program];
    notes->asked_ns += lasts_ns;
    notes->compute_ns += compute_for(&emulation->compute, lasts_ns);
}

/* --- iterations ------------------------------------------------------------------------------------------
 */

/* The iteration that was being made is over. */
static void end_iteration(struct emulation *emulation, uint64_t now_ns) {
    struct notes *notes = &emulation->notes[emulation->program];
    if (emulation->program == 0)
        return;
    notes->ended_ns[notes->made++] = (int64_t)now_ns;
    notes->time_ns += now_ns - emulation->begun_ns;
}

static int perform_phase(struct emulation *emulation, const struct entry *entry) {
    const bool begins = entry_is_mark(entry, TRACE_MARK_ITERATION);
    if (begins || entry_is_mark(entry, TRACE_MARK_END)) {
        const uint64_t now_ns = clock_now_ns();
        end_iteration(emulation, now_ns);
        emulation->program = begins ? entry->record.tag : 0;
        emulation->begun_ns = now_ns;
    }
    if (entry_is_mark(entry, TRACE_MARK_SERVE))
        return perform_serve(emulation, entry);
    if (entry_is_mark(entry, TRACE_MARK_FARM))
        return perform_farm(emulation, entry);
    return MPI_SUCCESS;
}

/* --- records ---------------------------------------------------------------------------------------------
 */

static int perform_nothing(struct emulation *emulation, const struct entry *entry) {
    (void)emulation;
    (void)entry;
    return MPI_SUCCESS;
}

/* What a survey has let pass is here. */
static const struct {
    perform_function perform;
    const char *name;
} KINDS[] = {
    [TRACE_COMMUNICATOR] = {perform_nothing, "communicator"},
    [TRACE_PHASE] = {perform_phase, "client and server, or farm"},
    [TRACE_SEND] = {perform_send, "MPI_Send"},
    [TRACE_RECV] = {perform_receive, "MPI_Recv"},
    [TRACE_ISEND] = {perform_begin, "MPI_Isend"},
    [TRACE_IRECV] = {perform_begin, "MPI_Irecv"},
    [TRACE_SENDRECV] = {perform_exchange, "MPI_Sendrecv"},
    [TRACE_SEND_INIT] = {perform_make, "MPI_Send_init"},
    [TRACE_RECV_INIT] = {perform_make, "MPI_Recv_init"},
    [TRACE_START] = {perform_start, "MPI_Startall"},
    [TRACE_FREE] = {perform_free, "MPI_Request_free"},
    [TRACE_WAIT] = {perform_wait, "MPI_Waitall"},
    [TRACE_BARRIER] = {perform_together, "MPI_Barrier"},
    [TRACE_BCAST] = {perform_together, "MPI_Bcast"},
    [TRACE_GATHER] = {perform_together, "MPI_Gather"},
    [TRACE_SCATTER] = {perform_together, "MPI_Scatter"},
    [TRACE_ALLGATHER] = {perform_together, "MPI_Allgather"},
    [TRACE_ALLTOALL] = {perform_together, "MPI_Alltoall"},
    [TRACE_REDUCE] = {perform_together, "MPI_Reduce"},
    [TRACE_ALLREDUCE] = {perform_together, "MPI_Allreduce"},
    [TRACE_REDUCE_SCATTER_BLOCK] = {perform_together, "MPI_Reduce_scatter_block"},
    [TRACE_SCAN] = {perform_together, "MPI_Scan"},
    [TRACE_EXSCAN] = {perform_together, "MPI_Exscan"},
    [TRACE_NEIGHBOR_ALLTOALLV] = {perform_neighbours, "MPI_Neighbor_alltoallv"},
    [TRACE_WINDOW] = {perform_window, "MPI_Win_create"},
    [TRACE_FENCE] = {perform_fence, "MPI_Win_fence"},
    [TRACE_PUT] = {perform_put, "MPI_Put"},
    [TRACE_WINDOW_FREE] = {perform_window_free, "MPI_Win_free"},
};

static int failed(struct emulation *emulation, uint8_t kind, uint64_t at, int code) {
    char said[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(code, said, &length);
    return failure_set(emulation->failure, "mpi", "", "rank %d, record %" PRIu64 ": %s fails: %.300s",
                       emulation->rank, at, KINDS[kind].name, said);
}

int emulation_perform(struct emulation *emulation, uint64_t until) {
    struct entry entry;
    while (emulation->place < until) {
        const uint64_t at = emulation->place;
        stream_next(&emulation->stream, &emulation->place, &entry);
        if (entry.compute_ns > 0)
            emulation_compute(emulation, entry.compute_ns);
        const int code = KINDS[entry.record.kind].perform(emulation, &entry);
        if (code != MPI_SUCCESS)
            return failed(emulation, entry.record.kind, at, code);
        watchdog_beat();
    }
    return 0;
}

void emulation_rewind(struct emulation *emulation) {
    emulation->place = emulation->survey.body;
    emulation->next_counts = emulation->next_farm = 0;
    emulation->program = 0;
    for (size_t program = 0; program < emulation->survey.programs; program++) {
        struct notes *notes = &emulation->notes[program];
        notes->made = 0;
        notes->time_ns = notes->compute_ns = notes->asked_ns = 0;
    }
}

/* --- room ------------------------------------------------------------------------------------------------
 */

static int take_room(struct emulation *emulation) {
    const struct survey *survey = &emulation->survey;
    const size_t requests = survey->requests;
    size_t neighbours = 1;
    for (size_t i = 0; i < emulation->teams.count; i++)
        neighbours += (size_t)(emulation->teams.items[i].sources + emulation->teams.items[i].targets);
    emulation->out = malloc(survey->out_bytes + 1);
    emulation->in = calloc(survey->passing.most + 1, 1);
    emulation->stay = calloc(survey->stay.most + 1, 1);
    /* Zeros are small numbers, too: what is added up takes no longer than usual. */
    emulation->together_out = calloc(survey->together_bytes + 1, 1);
    emulation->together_in = calloc(survey->together_bytes + 1, 1);
    emulation->put_out = malloc(survey->put_bytes + 1);
    emulation->requests = calloc(requests, sizeof *emulation->requests);
    emulation->numbers = calloc(requests, sizeof *emulation->numbers);
    emulation->handles = calloc(requests, sizeof *emulation->handles);
    emulation->statuses = calloc(requests, sizeof *emulation->statuses);
    emulation->windows = calloc(survey->windows + 1, sizeof *emulation->windows);
    emulation->out_counts = calloc(neighbours, sizeof *emulation->out_counts);
    emulation->out_places = calloc(neighbours, sizeof *emulation->out_places);
    emulation->in_places = calloc(neighbours, sizeof *emulation->in_places);
    emulation->notes = calloc(survey->programs, sizeof *emulation->notes);
    const bool has_all =
        emulation->out != NULL && emulation->in != NULL && emulation->stay != NULL &&
        emulation->together_out != NULL && emulation->together_in != NULL && emulation->put_out != NULL &&
        emulation->requests != NULL && emulation->numbers != NULL && emulation->handles != NULL &&
        emulation->statuses != NULL && emulation->windows != NULL && emulation->out_counts != NULL &&
        emulation->out_places != NULL && emulation->in_places != NULL && emulation->notes != NULL;
    if (!has_all) {
        emulation_failed(emulation, "no memory for messages of %zu B, and collectives of %zu B",
                         survey->passing.most + survey->stay.most + survey->out_bytes + survey->put_bytes,
                         2 * survey->together_bytes);
        return -1;
    }
    return 0;
}

static int make_ready(struct emulation *emulation) {
    const struct survey *survey = &emulation->survey;
    payload_fill(emulation->out, 0, survey->out_bytes, (uint64_t)emulation->rank, 0);
    windows_fill(emulation);
    for (size_t i = 0; i < survey->requests; i++)
        emulation->requests[i].handle = MPI_REQUEST_NULL;
    for (size_t i = 0; i <= survey->windows; i++)
        emulation->windows[i].handle = MPI_WIN_NULL;
    for (size_t program = 0; program < survey->programs; program++) {
        struct notes *notes = &emulation->notes[program];
        notes->iterations = survey->iterations[program];
        notes->ended_ns = calloc(notes->iterations + 1, sizeof *notes->ended_ns);
        if (notes->ended_ns == NULL)
            return failure_set(emulation->failure, "system", "", "no memory for %" PRIu64 " iterations",
                               notes->iterations);
    }
    return 0;
}

int emulation_open(struct emulation *emulation, const char *path, struct failure *failure) {
    emulation->failure = failure;
    MPI_Comm_rank(MPI_COMM_WORLD, &emulation->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &emulation->ranks);
    if (stream_deliver(path, &emulation->stream, failure) != 0 ||
        teams_make(&emulation->teams, &emulation->stream, failure) != 0 ||
        learned_make(&emulation->learned, &emulation->stream, &emulation->teams, failure) != 0 ||
        survey_make(&emulation->survey, &emulation->stream, &emulation->teams, &emulation->learned,
                    failure) != 0)
        return -1;
    return take_room(emulation) == 0 ? make_ready(emulation) : -1;
}

void emulation_close(struct emulation *emulation) {
    for (size_t program = 0; program < emulation->survey.programs; program++)
        free(emulation->notes[program].ended_ns);
    void *const all[] = {emulation->out,          emulation->in,          emulation->stay,
                         emulation->together_out, emulation->together_in, emulation->put_out,
                         emulation->requests,     emulation->numbers,     emulation->handles,
                         emulation->statuses,     emulation->windows,     emulation->out_counts,
                         emulation->out_places,   emulation->in_places,   emulation->notes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    survey_free(&emulation->survey);
    learned_free(&emulation->learned);
    teams_free(&emulation->teams);
    stream_free(&emulation->stream);
}
