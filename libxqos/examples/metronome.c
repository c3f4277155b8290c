/* SPDX-License-Identifier: MIT */
/* metronome.c: draws every 10 ms and shows how a reservation changes its response times.
 *
 * The program measures twice: first as an ordinary client, then with 3 ms of server time reserved in every 10 ms. On an
 * idle server both results are the same; while another program keeps the server busy (x11perf -putimage500 -repeat 20),
 * they differ. The response time is that of a whole frame, from sending the requests to receiving the answer.
 *
 * usage: metronome [frames of each measurement, 500 by default]
 * build: cc metronome.c $(pkg-config --cflags --libs xqos)
 *
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <xqos.h>

enum {
    PERIOD_US = 10000,
    BUDGET_US = 3000,
    WIDTH = 400,
    HEIGHT = 100,
    BARS = 200 /* rectangles per frame, so that a frame takes more than one request */
};

struct canvas {
    xcb_connection_t *connection;
    xcb_window_t window;
    xcb_gcontext_t ink;
    xcb_gcontext_t paper;
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_until_us(int64_t instant)
{
    struct timespec at = { .tv_sec = instant / 1000000, .tv_nsec = instant % 1000000 * 1000 };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static xcb_gcontext_t make_gc(struct canvas *canvas, uint32_t pixel)
{
    xcb_gcontext_t gc = xcb_generate_id(canvas->connection);

    xcb_create_gc(canvas->connection, gc, canvas->window, XCB_GC_FOREGROUND, &pixel);
    return gc;
}

static struct canvas open_canvas(xcb_connection_t *connection)
{
    xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(connection)).data;
    struct canvas canvas = { .connection = connection, .window = xcb_generate_id(connection) };

    xcb_create_window(connection, XCB_COPY_FROM_PARENT, canvas.window, screen->root, 0, 0, WIDTH, HEIGHT, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, XCB_CW_BACK_PIXEL, &screen->white_pixel);
    canvas.ink = make_gc(&canvas, screen->black_pixel);
    canvas.paper = make_gc(&canvas, screen->white_pixel);
    xcb_map_window(connection, canvas.window);
    return canvas;
}

/* Draws the pendulum of frame number `frame` and returns when the server has drawn it. */
static int draw(const struct canvas *canvas, int frame)
{
    xcb_rectangle_t all = { 0, 0, WIDTH, HEIGHT };
    int swing = abs(frame % 100 - 50) * (WIDTH - BARS) / 50;
    xcb_get_input_focus_reply_t *answer;

    xcb_poly_fill_rectangle(canvas->connection, canvas->window, canvas->paper, 1, &all);
    for (int i = 0; i < BARS; i++) {
        xcb_rectangle_t bar = { (int16_t)(swing + i), (int16_t)(i % HEIGHT), 1, (uint16_t)(HEIGHT - i % HEIGHT) };
        xcb_poly_fill_rectangle(canvas->connection, canvas->window, canvas->ink, 1, &bar);
    }
    /* Any request with a reply would do, because the server executes a client's requests in order. */
    answer = xcb_get_input_focus_reply(canvas->connection, xcb_get_input_focus(canvas->connection), NULL);
    free(answer);
    return answer != NULL;
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void print_times(const char *title, int64_t *times, int frames)
{
    int late = 0;

    qsort(times, (size_t)frames, sizeof *times, by_size);
    for (int i = 0; i < frames; i++)
        late += times[i] > PERIOD_US;
    printf("%-20s %d frames, response in us: median %" PRId64 ", 99%% %" PRId64 ", longest %" PRId64
           "; %d finished after the next frame was due\n",
           title, frames, times[frames / 2], times[frames * 99 / 100], times[frames - 1], late);
}

static int measure(const struct canvas *canvas, const char *title, int frames)
{
    int64_t *times = calloc((size_t)frames, sizeof *times);
    int64_t start = now_us();

    if (!times)
        return 0;
    for (int frame = 0; frame < frames; frame++) {
        int64_t begin;

        sleep_until_us(start);
        begin = now_us();
        if (!draw(canvas, frame)) {
            free(times);
            return 0;
        }
        times[frame] = now_us() - begin;
        /* Continue at the next multiple of the period; this drops frames that are already late. */
        start += PERIOD_US * ((now_us() - start) / PERIOD_US + 1);
    }
    print_times(title, times, frames);
    free(times);
    return 1;
}

/* This is all that a client needs to do. */
static int reserve(xqos_t *xqos)
{
    struct xqos_admission refused = { .size = sizeof refused };
    int result = xqos_set_reservation(xqos, XQOS_SELF, BUDGET_US, PERIOD_US, 0, &refused);

    if (result == XQOS_ERR_ADMISSION)
        fprintf(stderr,
                "metronome: refused: client 0x%" PRIx32 " (period %" PRIu32 " us) needs %" PRIu32 " + %" PRIu32
                " ppm; the limit is %" PRIu32 " ppm\n",
                refused.failing_client, refused.failing_period_us, refused.sum_ppm, refused.blocking_ppm,
                refused.limit_ppm);
    else if (result != XQOS_OK)
        fprintf(stderr, "metronome: no reservation: %s\n", xqos_strerror(result));
    return result;
}

static void print_reservation(xqos_t *xqos)
{
    struct xqos_reservation mine = { .size = sizeof mine };

    if (xqos_get_reservation(xqos, XQOS_SELF, &mine) == XQOS_OK && mine.active)
        printf("%-20s %" PRIu32 " us in %" PRIu32 " us; %" PRIu32 " depletions, %" PRIu32 " misses\n",
               "the reservation:", mine.budget_us, mine.period_us, mine.depletions, mine.misses);
}

int main(int argc, char **argv)
{
    int frames = argc > 1 ? atoi(argv[1]) : 500;
    xcb_connection_t *connection = xcb_connect(NULL, NULL);
    struct canvas canvas;
    xqos_t *xqos;
    int result;

    if (frames < 1 || xcb_connection_has_error(connection)) {
        fprintf(stderr, "metronome: %s\n", frames < 1 ? "usage: metronome [frames]" : "cannot connect: check DISPLAY");
        return 1;
    }
    canvas = open_canvas(connection);
    if (!measure(&canvas, "without reservation:", frames))
        return 1;

    result = xqos_open(connection, &xqos);
    if (result != XQOS_OK) {
        fprintf(stderr, "metronome: %s\n", xqos_strerror(result));
        return 1;
    }
    result = reserve(xqos);
    if (result == XQOS_OK && !measure(&canvas, "with reservation:", frames))
        result = XQOS_ERR_CONNECTION;
    print_reservation(xqos);
    xqos_close(xqos);
    xcb_disconnect(connection);
    return result == XQOS_OK ? 0 : 1;
}
