! A program that counts what it sends and receives itself, in the three ways that Fortran has of calling MPI:
! -DMPIF (mpif.h), -DMODULE (use mpi), -DF08 (use mpi_f08). Each rank prints what traced.c prints.
#ifdef F08
#define HANDLE(of) type(of)
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, many) type(MPI_Status) :: name(many)
#define SOURCE_OF(name) name%MPI_SOURCE
#define NO_ERROR
#else
#define HANDLE(of) integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, many) integer :: name(MPI_STATUS_SIZE, many)
#define SOURCE_OF(name) name(MPI_SOURCE)
#define NO_ERROR , error
#endif

program traced
#if defined F08
    use mpi_f08
    implicit none
#elif defined MODULE
    use mpi
    implicit none
#else
    implicit none
    include 'mpif.h'
#endif
    integer, parameter :: rounds = 5, most = 64
    integer :: rank, ranks, left, right, error, round, one, done, index
    integer :: sent = 0, sent_bytes = 0, got = 0, got_bytes = 0, together = 0
    integer :: data(4096) = 0, to(4096) = 0, counts(most), places(most), indices(most)
    logical :: flag
    character(len = 16) :: name
    HANDLE(MPI_Request) :: requests(most)
    HANDLE(MPI_Comm) :: half, line
    HANDLE(MPI_Datatype) :: column
    STATUS(status)
    STATUSES(all, most)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    left = mod(rank + ranks - 1, ranks)
    right = mod(rank + 1, ranks)
    call get_command_argument(1, name)
    select case (name)
    case ('messages')
        call messages
    case ('requests')
        call with_requests
    case ('collectives')
        call collectives
    case ('communicators')
        call communicators
    end select
    print '(6(i0, 1x))', rank, sent, sent_bytes, got, got_bytes, together
    flush (6)
#ifdef F08
    call MPI_Finalize()
#else
    call MPI_Finalize(error)
#endif

contains

    subroutine sends(bytes)
        integer, intent(in) :: bytes
        sent = sent + 1
        sent_bytes = sent_bytes + bytes
    end subroutine

    subroutine gets(bytes)
        integer, intent(in) :: bytes
        got = got + 1
        got_bytes = got_bytes + bytes
    end subroutine

    subroutine messages
        do round = 1, rounds
            if (mod(rank, 2) == 0) then
                call MPI_Send(data, 10 + round, MPI_INTEGER, right, round, MPI_COMM_WORLD NO_ERROR)
                call MPI_Recv(to, most, MPI_INTEGER, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE NO_ERROR)
            else
                call MPI_Recv(to, most, MPI_INTEGER, left, round, MPI_COMM_WORLD, status NO_ERROR)
                call MPI_Ssend(data, 10 + round, MPI_INTEGER, right, round, MPI_COMM_WORLD NO_ERROR)
            end if
            call sends(4*(10 + round))
            call gets(4*(10 + round))
        end do
        call MPI_Sendrecv(data, 9, MPI_INTEGER, right, 1, to, most, MPI_INTEGER, left, 1, MPI_COMM_WORLD, &
                          MPI_STATUS_IGNORE, error)
        call MPI_Sendrecv_replace(data, 5, MPI_DOUBLE_PRECISION, left, 2, right, 2, MPI_COMM_WORLD, status, error)
        call sends(36)
        call gets(36)
        call sends(40)
        call gets(40)
        call MPI_Isend(data, 6, MPI_INTEGER, right, 3, MPI_COMM_WORLD, requests(1), error)
        call MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, status, error)
        call MPI_Recv(to, most, MPI_INTEGER, SOURCE_OF(status), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
        call sends(24)
        call gets(24)
        call MPI_Type_vector(6, 1, 8, MPI_DOUBLE_PRECISION, column, error)
        call MPI_Type_commit(column, error)
        call MPI_Irecv(to, 6, MPI_DOUBLE_PRECISION, left, 4, MPI_COMM_WORLD, requests(1), error)
        call MPI_Send(data, 1, column, right, 4, MPI_COMM_WORLD, error)
        call MPI_Wait(requests(1), status, error)
        call MPI_Type_free(column, error)
        call sends(48)
        call gets(48)
        call MPI_Pcontrol(7)
    end subroutine

    subroutine with_requests
        do round = 1, rounds
            call MPI_Irecv(to, most, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), error)
            call MPI_Irecv(to(1000:), most, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2), error)
            call MPI_Isend(data, 8, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(3), error)
            call MPI_Issend(data, round, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(4), error)
            if (mod(round, 2) == 0) then
                call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
            else
                call MPI_Waitall(4, requests, all, error)
            end if
            call sends(32)
            call gets(32)
            call sends(4*round)
            call gets(4*round)
        end do
        call MPI_Recv_init(to, most, MPI_INTEGER, left, 9, MPI_COMM_WORLD, requests(1), error)
        call MPI_Send_init(data, 6, MPI_INTEGER, right, 9, MPI_COMM_WORLD, requests(2), error)
        do round = 1, rounds
            call MPI_Startall(2, requests, error)
            flag = .false.
            do while (.not. flag)
                call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, error)
            end do
            call sends(24)
            call gets(24)
        end do
        call MPI_Request_free(requests(1), error)
        call MPI_Request_free(requests(2), error)
        call MPI_Barrier(MPI_COMM_WORLD, error)
        together = together + 1
        if (rank > 0) then
            do round = 1, rounds
                call MPI_Send(data, rank, MPI_INTEGER, 0, round, MPI_COMM_WORLD, error)
                call sends(4*rank)
            end do
            return
        end if
        do one = 1, rounds*(ranks - 1)
            call MPI_Irecv(to(one*most:), most, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
                           requests(one), error)
        end do
        done = 0
        do while (done < rounds*(ranks - 1))
            if (mod(done, 2) == 0) then
                call MPI_Waitany(rounds*(ranks - 1), requests, index, status, error)
                call gets(4*SOURCE_OF(status))
                done = done + 1
            else
                call MPI_Waitsome(rounds*(ranks - 1), requests, index, indices, all, error)
                do one = 1, index
#ifdef F08
                    call gets(4*all(one)%MPI_SOURCE)
#else
                    call gets(4*all(MPI_SOURCE, one))
#endif
                end do
                done = done + index
            end if
        end do
    end subroutine

    subroutine collectives
        do one = 1, ranks
            counts(one) = one
            places(one) = one*most
        end do
        call MPI_Bcast(data, 3, MPI_INTEGER, 0, MPI_COMM_WORLD NO_ERROR)
        call MPI_Allreduce(MPI_IN_PLACE, data, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD NO_ERROR)
        call MPI_Allreduce(data, to, 2, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
        call MPI_Allgatherv(data, rank + 1, MPI_INTEGER, to, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
        call MPI_Gather(data, 2, MPI_INTEGER, to, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
        if (rank == 0) then
            call MPI_Reduce(MPI_IN_PLACE, data, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
        else
            call MPI_Reduce(data, to, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
        end if
        call MPI_Iallreduce(data, to, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
        call MPI_Ibarrier(MPI_COMM_WORLD, requests(2), error)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
        together = together + 8
    end subroutine

    subroutine communicators
        integer :: before, after, own
        logical :: round_about(1) = .false.
        call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)
        call MPI_Comm_rank(half, own, error)
        call MPI_Bcast(data, 3, MPI_INTEGER, 0, half, error)
        if (own == 1) then
            call MPI_Send(data, 2, MPI_INTEGER, 0, 0, half, error)
            call sends(8)
        else if (own == 0) then
            call MPI_Recv(to, 2, MPI_INTEGER, 1, 0, half, MPI_STATUS_IGNORE, error)
            call gets(8)
        end if
        call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ranks/), round_about, .false., line, error)
        call MPI_Cart_shift(line, 0, 1, before, after, error)
        call MPI_Sendrecv(data, 9, MPI_INTEGER, after, 4, to, most, MPI_INTEGER, before, 4, line, &
                          MPI_STATUS_IGNORE, error)
        if (after /= MPI_PROC_NULL) call sends(36)
        if (before /= MPI_PROC_NULL) call gets(36)
        call MPI_Neighbor_alltoall(data, 2, MPI_INTEGER, to, 2, MPI_INTEGER, line, error)
        together = together + 4
        call MPI_Comm_free(half, error)
        call MPI_Comm_free(line, error)
    end subroutine
end program
