// SPDX-License-Identifier: GPL-2.0
/*
 * Pieces of a send that is partly in files.
 *
 * A file is read as splice(2) reads it: the result is references to pages, those
 * of the page cache if the file system has one. They are sent in place, without a
 * copy. So changes that are made to the file during the send may or may not be in
 * the sent bytes, as with sendfile(2). If the file is truncated, its old pages stay while they are
 * referenced.
 */
#include <linux/bitmap.h>
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pipe_fs_i.h>
#include <linux/ramfs.h>
#include <linux/slab.h>
#include <linux/splice.h>

#include "../../core/stats.h"
#include "../queue/inflight.h"
#include "feed.h"

/* Entries besides those of whole pages: for file systems that give less at a time. */
#define EXS_FEED_SPARE	16
#define EXS_FEED_BVECS	(EXS_FEED_PIECE / PAGE_SIZE + EXS_FEED_SPARE)

static struct workqueue_struct *exs_feed_wq;

/* Queue the work, with the caller's reference. */
static void exs_feed_queue(struct exs_feed *f)
{
	if (!queue_work(exs_feed_wq, &f->work))
		exs_feed_put(f);
}

void exs_feed_kick(struct exs_feed *f)
{
	kref_get(&f->ref);
	exs_feed_queue(f);
}

static void exs_feed_again(struct exs_turn *turn)
{
	exs_feed_queue(container_of(turn, struct exs_feed, turn));
}

/*
 * A feed that waits for its turn keeps the work's reference. One whose operation has ended
 * reads nothing more, and so needs no turn.
 */
static void exs_feed_work(struct work_struct *work)
{
	struct exs_feed *f = container_of(work, struct exs_feed, work);
	bool over = READ_ONCE(f->over);
	int turn = 0;

	if (over && exs_turn_leave(f->user, &f->turn))
		exs_feed_put(f);	/* not the last reference: the work has one */
	if (!over)
		turn = exs_turn_take(f->user, &f->turn);
	if (turn > 0) {
		f->run(f);
		exs_turn_pass(f->user, EXS_POOL_FEED);
	}
	if (over || turn)
		exs_feed_put(f);
}

static void exs_feed_dimension(struct exs_feed *f, u32 count, u64 len)
{
	u64 n;

	f->max_len = f->message ? EXS_MESSAGE_MAX + 1 : EXS_FEED_PIECE;
	/* Each part may begin and end within a page. */
	n = PFN_UP(min_t(u64, len, f->max_len)) + 2 * count + EXS_FEED_SPARE;
	f->max_bvecs = f->message ? n : min_t(u64, n, EXS_FEED_BVECS);
	f->charged = f->message ? f->max_bvecs : EXS_FEED_AHEAD * f->max_bvecs;
}

static struct cgroup_subsys_state *exs_feed_blkcg(void)
{
#ifdef CONFIG_BLK_CGROUP
	return task_get_css(current, io_cgrp_id);
#else
	return NULL;
#endif
}

static void exs_feed_uncharge(struct exs_feed *f)
{
	struct exs_user *user = f->user;

	exs_limit_uncharge(EXS_LIMIT_OPS, f->most_parts, user);
	exs_limit_uncharge(EXS_LIMIT_PAGES, f->charged, user);
}

/* A feed holds files, even when the program has closed them. */
static int exs_feed_charge(struct exs_feed *f, const struct exs_net *xn)
{
	int err = exs_limit_charge(EXS_LIMIT_PAGES, f->charged, &f->user);

	if (err)
		return err;
	err = exs_limit_charge_user(xn, EXS_LIMIT_OPS, f->most_parts, f->user);
	if (err)
		exs_limit_uncharge(EXS_LIMIT_PAGES, f->charged, f->user);
	return err;
}

struct exs_feed *exs_feed_new(const struct exs_op *op, u32 count, u64 len)
{
	struct exs_feed *f = kvzalloc(struct_size(f, parts, count), GFP_KERNEL_ACCOUNT);
	int err;

	if (!f)
		return ERR_PTR(-ENOMEM);
	f->message = op->sk->sk_type != SOCK_STREAM;
	f->most_parts = count;
	exs_feed_dimension(f, count, len);
	err = exs_feed_charge(f, op->queue->xn);
	if (err) {
		kvfree(f);
		return ERR_PTR(err);
	}
	kref_init(&f->ref);
	INIT_WORK(&f->work, exs_feed_work);
	exs_turn_init(&f->turn, EXS_POOL_FEED, exs_feed_again);
	spin_lock_init(&f->lock);
	f->xn = exs_net_get(op->queue->xn);
	f->cred = get_current_cred();
	f->memcg = get_mem_cgroup_from_mm(current->mm);
	f->blkcg = exs_feed_blkcg();
	exs_live(f->xn, feeds, 1);
	return f;
}

void exs_feed_release(struct kref *ref)
{
	struct exs_feed *f = container_of(ref, struct exs_feed, ref);

	while (f->nparts--)
		if (f->parts[f->nparts].file)
			fput(f->parts[f->nparts].file);
	if (f->piece)
		exs_feed_piece_free(f->piece);
	if (f->ready)
		exs_feed_piece_free(f->ready);
	if (f->conn)
		exs_conn_put(f->conn);
	put_cred(f->cred);
	mem_cgroup_put(f->memcg);
	if (f->blkcg)
		css_put(f->blkcg);
	exs_feed_uncharge(f);
	exs_live(f->xn, feeds, -1);
	exs_net_put(f->xn);
	kvfree(f);
}

void exs_feed_add_memory(struct exs_feed *f, u64 len, unsigned int nbvecs)
{
	/* All memory before the first file is one part. */
	if (f->nparts <= 1 && !f->parts[0].file)
		f->header += len;
	if (!f->nparts || f->parts[f->nparts - 1].file)
		f->nparts++;
	f->parts[f->nparts - 1].nbvecs += nbvecs;
}

/*
 * Whether the file's bytes are the same for every reader. They are if a page cache, or memory,
 * has them. procfs has no page cache, and kernfs only appears to have one: its files'
 * mappings have the operations of ramfs. For an overlay, the file below decides.
 */
static bool exs_feed_cached(const struct file *file)
{
	const struct inode *inode = file_inode(file);
	const struct address_space_operations *ops;

	if (S_ISBLK(inode->i_mode))
		return file->f_mapping->a_ops->read_folio;
	if (!S_ISREG(inode->i_mode))
		return false;
	inode = d_real_inode(file->f_path.dentry);
	ops = inode->i_mapping->a_ops;
	switch (inode->i_sb->s_magic) {
	case RAMFS_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return IS_DAX(inode) || (ops->read_folio && ops != &ram_aops);
	}
}

static int exs_feed_check(const struct exs_feed *f, struct exs_feed_part *part, u64 pos,
			  u64 len)
{
	if (!(part->file->f_mode & FMODE_READ))
		return -EBADF;
	if (!part->file->f_op->splice_read || !exs_feed_cached(part->file)) {
		exs_count(f->xn, files_refused, 1);
		return -EINVAL;
	}
	if (pos > LLONG_MAX)
		return -EINVAL;
	part->pos = pos;
	part->left = LLONG_MAX - pos;
	if (len == EXS_IOV_TO_EOF)
		return 0;
	if (len > part->left)
		return -EOVERFLOW;
	part->left = len;
	return 0;
}

int exs_feed_add_file(struct exs_feed *f, const struct exs_sqe_iovec *piece)
{
	struct exs_feed_part *part = &f->parts[f->nparts];

	part->file = fget(piece->region);
	if (!part->file)
		return -EBADF;
	f->nparts++;
	return exs_feed_check(f, part, piece->addr, piece->len);
}

void exs_feed_parts(const struct exs_feed *f, u64 *parts)
{
	parts[0] = min(f->sent, f->header);
	parts[1] = min(f->sent - parts[0], f->filed);
}

static struct exs_feed_piece *exs_feed_piece_new(struct exs_feed *f)
{
	struct exs_feed_piece *p;

	p = kvzalloc(struct_size(p, bvec, f->max_bvecs), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	p->is_file = bitmap_zalloc(f->max_bvecs, GFP_KERNEL_ACCOUNT);
	if (!p->is_file) {
		kvfree(p);
		return NULL;
	}
	p->feed = f;
	exs_live(f->xn, xfers, 1);
	return p;
}

void exs_feed_piece_free(struct exs_feed_piece *p)
{
	unsigned int i;

	for_each_set_bit(i, p->is_file, p->nbvecs)
		put_page(p->bvec[i].bv_page);
	bitmap_free(p->is_file);
	exs_live(p->feed->xn, xfers, -1);
	kvfree(p);
}

static bool exs_feed_piece_full(const struct exs_feed_piece *p)
{
	return p->nbvecs == p->feed->max_bvecs || p->len >= p->feed->max_len;
}

/* The pages are not touched here: the operation may end before they are sent. */
static int exs_feed_read_memory(struct exs_feed *f, struct exs_feed_part *part,
				struct exs_feed_piece *p)
{
	int err = 0;

	spin_lock(&f->lock);
	if (f->over)
		err = -ECANCELED;
	while (!err && part->nbvecs && !exs_feed_piece_full(p)) {
		p->len += f->bvec->bv_len;
		p->bvec[p->nbvecs++] = *f->bvec++;
		part->nbvecs--;
	}
	spin_unlock(&f->lock);
	return err;
}

/* A splice_actor. The page stays as long as the piece; the pipe's buffer does not. */
static int exs_feed_take(struct pipe_inode_info *pipe, struct pipe_buffer *buf,
			 struct splice_desc *sd)
{
	struct exs_feed_piece *p = sd->u.data;

	if (exs_feed_piece_full(p))
		return 0;
	get_page(buf->page);
	__set_bit(p->nbvecs, p->is_file);
	bvec_set_page(&p->bvec[p->nbvecs++], buf->page, sd->len, buf->offset);
	p->len += sd->len;
	p->file_len += sd->len;
	return sd->len;
}

static int exs_feed_take_all(struct pipe_inode_info *pipe, struct splice_desc *sd)
{
	return __splice_from_pipe(pipe, sd, exs_feed_take);
}

/*
 * splice makes a pipe and keeps it for the thread. It is made before the thread takes the
 * submitter's credentials, so it does not count against the submitter's limit of pipes.
 */
static int exs_feed_make_pipe(struct file *file)
{
	struct splice_desc nothing = { 0 };

	if (current->splice_pipe)
		return 0;
	return splice_direct_to_actor(file, &nothing, exs_feed_take_all);
}

/* With the submitter's credentials, for security modules and file systems. */
static ssize_t exs_feed_splice(struct exs_feed *f, struct exs_feed_part *part,
			       struct exs_feed_piece *p)
{
	size_t len = min_t(u64, part->left, f->max_len - p->len);
	struct splice_desc sd = {
		.len		= len,
		.total_len	= len,
		.pos		= part->pos,
		.u.data		= p,
	};
	ssize_t res = exs_feed_make_pipe(part->file);
	const struct cred *old;

	if (res < 0)
		return res;
	old = override_creds(f->cred);
	res = rw_verify_area(READ, part->file, &part->pos, len);
	if (res >= 0)
		res = splice_direct_to_actor(part->file, &sd, exs_feed_take_all);
	revert_creds(old);
	return res;
}

static int exs_feed_read_file(struct exs_feed *f, struct exs_feed_part *part,
			      struct exs_feed_piece *p)
{
	ssize_t n = part->left ? exs_feed_splice(f, part, p) : 0;

	if (n < 0)
		return n;
	part->pos += n;
	part->left = n ? part->left - n : 0;
	return 0;
}

static int exs_feed_fill(struct exs_feed *f, struct exs_feed_piece *p)
{
	struct exs_feed_part *part;
	int err = 0;

	while (!err && !exs_feed_at_end(f) && !exs_feed_piece_full(p)) {
		part = &f->parts[f->at];
		if (part->file)
			err = exs_feed_read_file(f, part, p);
		else
			err = exs_feed_read_memory(f, part, p);
		if (!err && !part->left && !part->nbvecs)
			f->at++;
		cond_resched();
	}
	if (!err && f->message && (p->len > EXS_MESSAGE_MAX || !exs_feed_at_end(f)))
		err = -EMSGSIZE;
	return err;
}

/* A message is sent only as a whole, and may be empty; a stream sends what was read. */
static bool exs_feed_sendable(const struct exs_feed *f, const struct exs_feed_piece *p,
			      int err)
{
	return f->message ? !err : p->len;
}

/* Errors that a file system may return, but that mean something else to a sender. */
static int exs_feed_errno(int err)
{
	return err == -EAGAIN || err == -EIOCBQUEUED ? -EIO : err;
}

int exs_feed_read(struct exs_feed *f, struct exs_feed_piece **piece)
{
	struct mem_cgroup *old = set_active_memcg(f->memcg);
	struct exs_feed_piece *p = exs_feed_piece_new(f);
	int err;

	kthread_associate_blkcg(f->blkcg);
	err = p ? exs_feed_fill(f, p) : -ENOMEM;
	kthread_associate_blkcg(NULL);
	set_active_memcg(old);
	if (p && !exs_feed_sendable(f, p, err)) {
		exs_feed_piece_free(p);
		p = NULL;
	}
	*piece = p;
	return exs_feed_errno(err);
}

int exs_feeds_init(void)
{
	exs_feed_wq = alloc_workqueue("exs_feed", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return exs_feed_wq ? 0 : -ENOMEM;
}

void exs_feeds_exit(void)
{
	destroy_workqueue(exs_feed_wq);
}
