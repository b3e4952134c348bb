#include "probe/command.h"

void put_u64(unsigned char *bytes, uint64_t value) {
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (i * 8));
}

uint64_t get_u64(const unsigned char *bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << (i * 8);
    return value;
}

void put_u32(unsigned char *bytes, uint32_t value) {
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (i * 8));
}

uint32_t get_u32(const unsigned char *bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint32_t)bytes[i] << (i * 8);
    return value;
}

void command_encode(const struct command *command, unsigned char bytes[COMMAND_BYTES]) {
    put_u64(bytes, command->kind);
    put_u64(bytes + 8, command->size);
    put_u64(bytes + 16, command->iterations);
    put_u64(bytes + 24, command->number);
    put_u64(bytes + 32, command->seed);
}

void command_decode(struct command *command, const unsigned char bytes[COMMAND_BYTES]) {
    command->kind = get_u64(bytes);
    command->size = get_u64(bytes + 8);
    command->iterations = get_u64(bytes + 16);
    command->number = get_u64(bytes + 24);
    command->seed = get_u64(bytes + 32);
}
