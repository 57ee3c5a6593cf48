// SPDX-License-Identifier: MIT
/*
 * A reader increments a counter in the slot, which is never freed, before it loads the
 * slot's mapping. A mapping that was removed from its slot is unmapped when the counter is
 * zero afterwards: later readers find the new mapping. The last reader to leave unmaps
 * waiting mappings.
 *
 * A reader drops its pin before it blocks, because a mapping keeps the queue's file alive.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "map.h"

#define CHUNK_SLOTS	1024
#define CHUNKS		4096	/* descriptors up to 4 Mi */

struct exs_slot {
	struct exs_map *map;		/* atomic */
	struct exs_map *retired;	/* written under lock, read without */
	unsigned long users;		/* atomic */
} __attribute__((aligned(64)));

static struct exs_slot *chunks[CHUNKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct exs_map *unused;		/* under lock */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t page;			/* set before the first mapping */

static struct exs_slot *find_slot(int fd)
{
	struct exs_slot *chunk;

	if (fd < 0 || fd >= CHUNKS * CHUNK_SLOTS)
		return NULL;
	chunk = __atomic_load_n(&chunks[fd / CHUNK_SLOTS], __ATOMIC_ACQUIRE);
	return chunk ? chunk + fd % CHUNK_SLOTS : NULL;
}

/* Under lock. */
static struct exs_slot *make_slot(int fd)
{
	struct exs_slot *slot = find_slot(fd), *chunk;

	if (slot)
		return slot;
	if (fd < 0 || fd >= CHUNKS * CHUNK_SLOTS) {
		errno = fd < 0 ? EBADF : EMFILE;
		return NULL;
	}
	chunk = aligned_alloc(64, CHUNK_SLOTS * sizeof(*chunk));
	if (!chunk)
		return NULL;
	for (slot = chunk; slot < chunk + CHUNK_SLOTS; slot++)
		*slot = (struct exs_slot){ 0 };
	__atomic_store_n(&chunks[fd / CHUNK_SLOTS], chunk, __ATOMIC_RELEASE);
	return chunk + fd % CHUNK_SLOTS;
}

static void map_free(struct exs_map *map)
{
	munmap((void *)map->view.ring, map->ring_len);
	munmap(map->view.head, page);
	free(map);
}

/* A child that is forked before the unmap must not inherit the mapping. */
static void not_for_children(struct exs_map *map)
{
	madvise((void *)map->view.ring, map->ring_len, MADV_DONTFORK);
	madvise(map->view.head, page, MADV_DONTFORK);
}

/*
 * Unmap unused mappings. The last mapping of a queue cancels its operations, which may take
 * time: not under lock.
 */
static void unlock(void)
{
	struct exs_map *map, *next;

	for (map = unused; map; map = map->next)
		not_for_children(map);
	map = unused;
	unused = NULL;
	pthread_mutex_unlock(&lock);
	for (; map; map = next) {
		next = map->next;
		map_free(map);
	}
}

/* Under lock. */
static void discard(struct exs_map *map)
{
	map->next = unused;
	unused = map;
}

/* Under lock. */
static void reap(struct exs_slot *slot)
{
	struct exs_map *map;

	if (__atomic_load_n(&slot->users, __ATOMIC_SEQ_CST))
		return;
	while ((map = slot->retired)) {
		__atomic_store_n(&slot->retired, map->next, __ATOMIC_RELAXED);
		discard(map);
	}
}

/* Under lock. */
static void retire(struct exs_slot *slot)
{
	struct exs_map *map;

	map = __atomic_exchange_n(&slot->map, NULL, __ATOMIC_SEQ_CST);
	if (!map)
		return;
	map->next = slot->retired;
	__atomic_store_n(&slot->retired, map, __ATOMIC_SEQ_CST);
	reap(slot);
}

/*
 * A child has one thread, so it has no other readers. It drops its parent's mappings: a
 * child that closes its descriptors must not hold queues.
 */
static void forked_slot(struct exs_slot *slot)
{
	slot->users = 0;
	retire(slot);
	reap(slot);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void forked(void)
{
	int i, j;

	for (i = 0; i < CHUNKS; i++)
		for (j = 0; chunks[i] && j < CHUNK_SLOTS; j++)
			forked_slot(&chunks[i][j]);
	unlock();
}

static void map_init(void)
{
	page = sysconf(_SC_PAGESIZE);
	pthread_atfork(before_fork, after_fork, forked);
}

static uint64_t ring_epoch(const struct exs_map *map)
{
	return __atomic_load_n(&map->view.ring->epoch, __ATOMIC_ACQUIRE);
}

static bool map_current(const struct exs_map *map)
{
	return ring_epoch(map) == __atomic_load_n(&map->epoch, __ATOMIC_RELAXED);
}

static bool is_queue(int fd, uint64_t id)
{
	int64_t now;

	return !exs_get_attr(fd, EXS_ATTR_ID, &now) && (uint64_t)now == id;
}

/*
 * @fd was queue @id, and must still be that after mmap(2). Otherwise this may be another, shorter
 * file, and reading the mapping would raise SIGBUS.
 */
static const struct exs_ring *ring_pages(int fd, uint64_t id, size_t len)
{
	void *ring = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, EXS_MMAP_RING);

	if (ring == MAP_FAILED)
		return NULL;
	if (is_queue(fd, id))
		return ring;
	munmap(ring, len);
	errno = EAGAIN;
	return NULL;
}

/* The first page of the ring has its size. */
static int ring_length(int fd, uint64_t id, size_t *len)
{
	const struct exs_ring *ring = ring_pages(fd, id, page);
	uint64_t entries, size;

	if (!ring)
		return -1;
	entries = (uint64_t)ring->mask + 1;
	size = ring->entry_size;
	munmap((void *)ring, page);
	if (size < sizeof(struct exs_cqe) || size % 8 || entries & (entries - 1)) {
		errno = EPROTO;
		return -1;
	}
	*len = page + ((entries * size + page - 1) & ~(uint64_t)(page - 1));
	return 0;
}

static int map_ring(int fd, uint64_t id, struct exs_map *map)
{
	struct exs_ring_view *v = &map->view;

	v->ring = ring_pages(fd, id, map->ring_len);
	if (!v->ring)
		return -1;
	map->epoch = ring_epoch(map);
	map->id = v->ring->id;
	v->mask = v->ring->mask;
	v->entry_size = v->ring->entry_size;
	v->entries = (const unsigned char *)v->ring + page;
	v->head = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       EXS_MMAP_HEAD);
	if (v->head != MAP_FAILED)
		return 0;
	munmap((void *)v->ring, map->ring_len);
	return -1;
}

static bool map_matches(const struct exs_map *map)
{
	const struct exs_ring_view *v = &map->view;

	return map_current(map) &&
	       map->ring_len - page >= ((size_t)v->mask + 1) * v->entry_size;
}

/*
 * Another thread may replace @fd at any time, also between the two mappings. Return: NULL
 * and EAGAIN if it was not queue @id before and after.
 */
static struct exs_map *map_new(int fd, uint64_t id)
{
	struct exs_map *map = calloc(1, sizeof(*map));
	bool mapped;
	int err;

	if (!map)
		return NULL;
	mapped = !ring_length(fd, id, &map->ring_len) && !map_ring(fd, id, map);
	err = mapped ? EAGAIN : errno;
	/* mmap(2) returns this for RLIMIT_MEMLOCK after mlockall(2). */
	if (!mapped && err == EAGAIN)
		err = ENOMEM;
	if (!is_queue(fd, id))
		err = EAGAIN;
	else if (mapped && map->id == id && map_matches(map))
		return map;
	if (mapped)
		discard(map);
	else
		free(map);
	errno = err;
	return NULL;
}

/*
 * Under lock. The epoch is read before the kernel is asked: if there is a change after the
 * answer, the next lookup asks again. Return: 0: look up again; -1 and errno: @fd is not a
 * queue.
 */
static int refresh(int fd)
{
	struct exs_slot *slot = make_slot(fd);
	struct exs_map *map;
	uint64_t epoch;
	int64_t id;

	if (!slot)
		return -1;
	map = slot->map;
	epoch = map ? ring_epoch(map) : 0;
	if (exs_get_attr(fd, EXS_ATTR_ID, &id)) {
		retire(slot);
		return -1;
	}
	if (map && (uint64_t)id == map->id) {
		__atomic_store_n(&map->epoch, epoch, __ATOMIC_RELAXED);
		return 0;
	}
	retire(slot);
	map = map_new(fd, id);
	if (!map)
		return errno == EAGAIN ? 0 : -1;
	__atomic_store_n(&slot->map, map, __ATOMIC_SEQ_CST);
	return 0;
}

static void lock_slots(void)
{
	pthread_once(&once, map_init);
	pthread_mutex_lock(&lock);
}

static int refresh_locked(int fd)
{
	int ret;

	lock_slots();
	ret = refresh(fd);
	unlock();
	return ret;
}

static bool try_pin(int fd, struct exs_pin *pin)
{
	pin->slot = find_slot(fd);
	if (!pin->slot)
		return false;
	__atomic_fetch_add(&pin->slot->users, 1, __ATOMIC_SEQ_CST);
	pin->map = __atomic_load_n(&pin->slot->map, __ATOMIC_SEQ_CST);
	if (pin->map && map_current(pin->map))
		return true;
	exs_map_unpin(pin);
	return false;
}

int exs_map_pin(int fd, struct exs_pin *pin)
{
	while (!try_pin(fd, pin))
		if (refresh_locked(fd))
			return -1;
	return 0;
}

void exs_map_unpin(const struct exs_pin *pin)
{
	struct exs_slot *slot = pin->slot;

	if (__atomic_sub_fetch(&slot->users, 1, __ATOMIC_SEQ_CST) ||
	    !__atomic_load_n(&slot->retired, __ATOMIC_SEQ_CST))
		return;
	lock_slots();
	reap(slot);
	unlock();
}

/* Forget the mapping of @fd; without @all only if it is stale. */
static void forget(int fd, bool all)
{
	struct exs_slot *slot;

	lock_slots();
	slot = find_slot(fd);
	if (slot && slot->map && (all || !map_current(slot->map)))
		retire(slot);
	unlock();
}

/* Meanwhile another thread may have mapped the queue again. */
int exs_map_close(int fd)
{
	int ret;

	forget(fd, true);
	ret = close(fd);
	forget(fd, false);
	return ret;
}

static void sweep_slot(struct exs_slot *slot, int fd)
{
	int64_t id;

	if (slot->map && !map_current(slot->map) &&
	    (exs_get_attr(fd, EXS_ATTR_ID, &id) ||
	     (uint64_t)id != slot->map->id))
		retire(slot);
}

void exs_map_sweep(void)
{
	int i, j, saved = errno;

	lock_slots();
	for (i = 0; i < CHUNKS; i++)
		for (j = 0; chunks[i] && j < CHUNK_SLOTS; j++)
			sweep_slot(&chunks[i][j], i * CHUNK_SLOTS + j);
	unlock();
	errno = saved;
}
