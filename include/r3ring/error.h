/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors in words and the log function.
 *
 * Every call that can fail returns a negative errno value. Calls that make a
 * handle also take a `struct r3ring_error *`, which says in words what was
 * wrong, where, and what to do about it. The library itself never prints.
 *
 * Values with a fixed meaning throughout r3ring:
 *   -ENOBUFS     full for now            -EMSGSIZE    never fits
 *   -EPROTO      other ABI or protocol   -EBADMSG     corrupt content
 *   -EOWNERDEAD  the peer died           -ENODEV      no such device (GPU)
 *   -EOVERFLOW   the reader was overrun  -ESTALE      handle of another process
 */
#ifndef R3RING_ERROR_H
#define R3RING_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols of libr3ring.so that callers may use; everything else is hidden. */
#define R3RING_API __attribute__((visibility("default")))

#define R3RING_ERROR_TEXT 504

struct r3ring_error {
	int code;                     /* negative errno, 0 while nothing failed */
	char text[R3RING_ERROR_TEXT]; /* one line, no newline at its end */
};

/*
 * Fills in an error and returns its code.
 *
 * @err:    where to store it; may be NULL, then only the code is returned.
 * @code:   negative errno value.
 * @format: printf format of the message; names what, where and the remedy.
 *
 * Returns @code. Keeps errno. Any thread; @err belongs to the caller.
 */
R3RING_API int r3ring_error_set(struct r3ring_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum r3ring_log_level {
	R3RING_LOG_ERROR = 0,
	R3RING_LOG_WARN = 1,
	R3RING_LOG_INFO = 2,
	R3RING_LOG_DEBUG = 3,
};

/*
 * Receives one event a call, as one line without a newline.
 * May be called from any thread, never from the capture path.
 */
typedef void (*r3ring_log_fn)(void *ctx, enum r3ring_log_level level, const char *line);

#ifdef __cplusplus
}
#endif

#endif
