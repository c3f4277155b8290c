/* SPDX-License-Identifier: MIT */
/* mock.c: the mock server's thread; see mock.h. */
#define _XOPEN_SOURCE 700

#include "mock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { MAX_BYTES = 4096, MAX_KEPT = 16 };

enum answer_kind { ANSWER_REPLY, ANSWER_ERROR, ANSWER_NOTHING, ANSWER_EVENT, ANSWER_HANG_UP };

struct packet {
    enum answer_kind kind;
    size_t length;
    uint8_t bytes[MAX_BYTES];
};

struct mock {
    int has_extension;
    uint32_t major;
    int connection; /* the server's end; -1 until the client has connected */
    int listener;   /* -1 without a display name */
    char display[16];
    struct sockaddr_un address;
    uint16_t sequence;
    pthread_t thread;

    /* Shared by the test and the thread: */
    pthread_mutex_t lock;
    struct packet answers[MAX_KEPT];
    int first_answer, answer_count;
    struct packet seen[MAX_KEPT];
    int seen_count;
};

/* ---- bytes ------------------------------------------------------------------------------------------------- */

static int read_all(int fd, void *out, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = recv(fd, (char *)out + done, bytes - done, 0);
        if (got <= 0)
            return 0;
        done += (size_t)got;
    }
    return 1;
}

/* Writes all bytes. If the client has disconnected, this causes no error and no signal. */
static void write_all(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (put <= 0)
            return;
        done += (size_t)put;
    }
}

static size_t padded(size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

/* ---- the handshake ----------------------------------------------------------------------------------------- */

struct setup {
    xcb_setup_t setup;
    char vendor[4];
    xcb_format_t format;
    xcb_screen_t screen;
    xcb_depth_t depth;
    xcb_visualtype_t visual;
};

static struct setup setup_of_server(void)
{
    enum { ROOT = 0x100, COLORMAP = 0x101, VISUAL = 0x102 };

    return (struct setup) {
        .setup = { .status = 1, .protocol_major_version = 11, .length = (sizeof(struct setup) - 8) / 4,
                   .resource_id_base = MOCK_RESOURCE_BASE, .resource_id_mask = 0x1fffff, .vendor_len = 4,
                   .maximum_request_length = 65535, .roots_len = 1, .pixmap_formats_len = 1,
                   .bitmap_format_scanline_unit = 32, .bitmap_format_scanline_pad = 32, .min_keycode = 8,
                   .max_keycode = 255 },
        .vendor = { 'm', 'o', 'c', 'k' },
        .format = { .depth = 24, .bits_per_pixel = 32, .scanline_pad = 32 },
        .screen = { .root = ROOT, .default_colormap = COLORMAP, .white_pixel = 0xffffff, .width_in_pixels = 640,
                    .height_in_pixels = 480, .width_in_millimeters = 170, .height_in_millimeters = 130,
                    .min_installed_maps = 1, .max_installed_maps = 1, .root_visual = VISUAL, .root_depth = 24,
                    .allowed_depths_len = 1 },
        .depth = { .depth = 24, .visuals_len = 1 },
        .visual = { .visual_id = VISUAL, ._class = 4, .bits_per_rgb_value = 8, .colormap_entries = 256,
                    .red_mask = 0xff0000, .green_mask = 0xff00, .blue_mask = 0xff },
    };
}

static int shake_hands(int fd)
{
    xcb_setup_request_t request;
    uint8_t authorization[1024];
    struct setup answer = setup_of_server();
    size_t rest;

    if (!read_all(fd, &request, sizeof request))
        return 0;
    rest = padded(request.authorization_protocol_name_len) + padded(request.authorization_protocol_data_len);
    if (rest > sizeof authorization || !read_all(fd, authorization, rest))
        return 0;
    write_all(fd, &answer, sizeof answer);
    return 1;
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static void reply(struct mock *mock, const void *data, size_t bytes)
{
    uint8_t packet[MAX_BYTES] = { 0 };

    memcpy(packet, data, bytes);
    memcpy(packet + 2, &mock->sequence, sizeof mock->sequence);
    write_all(mock->connection, packet, bytes < 32 ? 32 : bytes);
}

static void answer_core(struct mock *mock, const uint8_t *request)
{
    xcb_query_extension_reply_t extension = { .response_type = 1 };
    uint8_t plain[32] = { 1 };
    int is_ours = memcmp(request + 4, (uint8_t[]) { 4, 0 }, 2) == 0 && memcmp(request + 8, "XQOS", 4) == 0;

    switch (request[0]) {
    case XCB_QUERY_EXTENSION:
        if (is_ours && mock->has_extension) {
            extension.present = 1;
            extension.major_opcode = MOCK_OPCODE;
            extension.first_event = MOCK_FIRST_EVENT;
            extension.first_error = MOCK_FIRST_ERROR;
        }
        reply(mock, &extension, sizeof extension);
        break;
    case XCB_GET_INPUT_FOCUS:
    case XCB_GET_PROPERTY:
        reply(mock, plain, sizeof plain);
        break;
    default: /* CreateGC, FreeGC: no answer */
        break;
    }
}

static struct packet next_answer(struct mock *mock)
{
    struct packet none = { .kind = ANSWER_NOTHING };

    if (mock->answer_count == 0)
        return none;
    mock->answer_count--;
    return mock->answers[mock->first_answer++ % MAX_KEPT];
}

/* Returns 0 to end the connection. */
static int answer_xqos(struct mock *mock)
{
    struct packet answer;

    for (;;) {
        pthread_mutex_lock(&mock->lock);
        answer = next_answer(mock);
        pthread_mutex_unlock(&mock->lock);
        if (answer.kind == ANSWER_HANG_UP)
            return 0;
        if (answer.kind != ANSWER_NOTHING)
            reply(mock, answer.bytes, answer.length);
        if (answer.kind != ANSWER_EVENT)
            return 1;
    }
}

static void keep(struct mock *mock, const uint8_t *request, size_t bytes)
{
    pthread_mutex_lock(&mock->lock);
    if (mock->seen_count < MAX_KEPT) {
        mock->seen[mock->seen_count].length = bytes;
        memcpy(mock->seen[mock->seen_count++].bytes, request, bytes);
    }
    pthread_mutex_unlock(&mock->lock);
}

static int serve_one(struct mock *mock)
{
    uint8_t request[MAX_BYTES] = { 0 };
    uint16_t words;
    uint32_t version[3 + 5] = { 0 };

    if (!read_all(mock->connection, request, 4))
        return 0;
    memcpy(&words, request + 2, sizeof words);
    if (words < 1 || (size_t)words * 4 > sizeof request || !read_all(mock->connection, request + 4, words * 4u - 4))
        return 0;
    mock->sequence++;
    if (request[0] != MOCK_OPCODE) {
        answer_core(mock, request);
        return 1;
    }
    if (request[1] == 0) {
        ((uint8_t *)version)[0] = 1;
        version[2] = mock->major;
        reply(mock, version, sizeof version);
        return 1;
    }
    keep(mock, request, words * 4u);
    return answer_xqos(mock);
}

static void *serve(void *data)
{
    struct mock *mock = data;

    if (mock->listener >= 0)
        mock->connection = accept(mock->listener, NULL, NULL);
    if (shake_hands(mock->connection)) {
        while (serve_one(mock))
            ;
    }
    close(mock->connection);
    return NULL;
}

/* ---- the test's side --------------------------------------------------------------------------------------- */

static void must(int done, const char *what)
{
    if (done)
        return;
    perror(what);
    exit(1);
}

struct mock *mock_start(int has_extension, uint32_t major)
{
    struct mock *mock = calloc(1, sizeof *mock);

    must(mock != NULL, "calloc");
    mock->has_extension = has_extension;
    mock->major = major;
    mock->connection = mock->listener = -1;
    pthread_mutex_init(&mock->lock, NULL);
    return mock;
}

static void start_thread(struct mock *mock)
{
    must(pthread_create(&mock->thread, NULL, serve, mock) == 0, "pthread_create");
}

xcb_connection_t *mock_connect(struct mock *mock)
{
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    mock->connection = ends[0];
    start_thread(mock);
    return xcb_connect_to_fd(ends[1], NULL);
}

/* Uses the first free display number from 600, because servers and ssh use lower numbers. */
static int bind_display(struct mock *mock)
{
    for (int number = 600; number < 1000; number++) {
        mock->address.sun_family = AF_UNIX;
        snprintf(mock->address.sun_path, sizeof mock->address.sun_path, "/tmp/.X11-unix/X%d", number);
        if (bind(mock->listener, (struct sockaddr *)&mock->address, sizeof mock->address) == 0) {
            snprintf(mock->display, sizeof mock->display, ":%d", number);
            return 1;
        }
    }
    return 0;
}

const char *mock_display(struct mock *mock)
{
    /* Create the directory of the sockets with the mode that an X server would use. */
    if (mkdir("/tmp/.X11-unix", 0777) == 0)
        chmod("/tmp/.X11-unix", 01777);
    mock->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    must(mock->listener >= 0, "socket");
    must(bind_display(mock), "bind");
    must(listen(mock->listener, 1) == 0, "listen");
    start_thread(mock);
    return mock->display;
}

static void put_answer(struct mock *mock, enum answer_kind kind, const void *bytes, size_t length)
{
    struct packet *packet;

    pthread_mutex_lock(&mock->lock);
    packet = &mock->answers[(mock->first_answer + mock->answer_count++) % MAX_KEPT];
    packet->kind = kind;
    packet->length = length;
    if (length)
        memcpy(packet->bytes, bytes, length);
    pthread_mutex_unlock(&mock->lock);
}

void mock_answer(struct mock *mock, const void *bytes, size_t length)
{
    put_answer(mock, ANSWER_REPLY, bytes, length);
}

void mock_answer_error(struct mock *mock, uint8_t code, uint32_t value)
{
    uint8_t error[32] = { 0, code };

    memcpy(error + 4, &value, sizeof value);
    put_answer(mock, ANSWER_ERROR, error, sizeof error);
}

void mock_answer_nothing(struct mock *mock)
{
    put_answer(mock, ANSWER_NOTHING, NULL, 0);
}

void mock_hang_up(struct mock *mock)
{
    put_answer(mock, ANSWER_HANG_UP, NULL, 0);
}

void mock_send_event(struct mock *mock, const void *event)
{
    put_answer(mock, ANSWER_EVENT, event, 32);
}

const uint8_t *mock_seen(struct mock *mock, int index, size_t *bytes)
{
    const uint8_t *seen = NULL;

    pthread_mutex_lock(&mock->lock);
    if (index < mock->seen_count) {
        seen = mock->seen[index].bytes;
        *bytes = mock->seen[index].length;
    }
    pthread_mutex_unlock(&mock->lock);
    return seen;
}

void mock_forget(struct mock *mock)
{
    pthread_mutex_lock(&mock->lock);
    mock->seen_count = 0;
    pthread_mutex_unlock(&mock->lock);
}

void mock_stop(struct mock *mock)
{
    pthread_join(mock->thread, NULL);
    if (mock->listener >= 0) {
        close(mock->listener);
        unlink(mock->address.sun_path);
    }
    pthread_mutex_destroy(&mock->lock);
    free(mock);
}
