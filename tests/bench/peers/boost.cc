/* SPDX-License-Identifier: Apache-2.0 */
/* boost::lockfree::spsc_queue of a size fixed when compiled, which is the kind that may
 * lie in shared memory. */
#include <cerrno>
#include <new>

#include <boost/lockfree/spsc_queue.hpp>
#include <boost/version.hpp>

#include "tests/bench/peers/peer.h"
#include "tests/bench/peers/slab.h"

namespace
{

template <size_t SLOTS> struct pointers {
	using queue = boost::lockfree::spsc_queue<void *, boost::lockfree::capacity<SLOTS>>;

	static int prepare(struct peer_channel *channel)
	{
		int rc = slab_make(channel, sizeof(queue));

		if (!rc)
			new (slab_ring(channel)) queue;
		return rc;
	}

	static int send(struct peer_channel *channel, const void *message)
	{
		auto *full = static_cast<queue *>(channel->end);

		if (!full->write_available() || !full->push(slab_fill(channel, message)))
			return -EAGAIN;
		slab_advance(channel);
		return 0;
	}

	static int receive(struct peer_channel *channel, void *message)
	{
		size_t size = channel->size;

		return static_cast<queue *>(channel->end)->consume_one([=](void *slot) {
			memcpy(message, slot, size);
		});
	}
};

using many = pointers<1024>;
using few = pointers<32>;

bool is_few(const struct peer_channel *channel)
{
	return channel->slots == 32;
}

const char *boost_version()
{
	return BOOST_LIB_VERSION;
}

int boost_prepare(struct peer_channel *channel)
{
	if (is_few(channel))
		return few::prepare(channel);
	return channel->slots == 1024 ? many::prepare(channel) : -EINVAL;
}

int boost_open(struct peer_channel *channel, int)
{
	channel->end = slab_ring(channel);
	return 0;
}

int boost_send(struct peer_channel *channel, const void *message, bool)
{
	return is_few(channel) ? few::send(channel, message) : many::send(channel, message);
}

int boost_receive(struct peer_channel *channel, void *message)
{
	return is_few(channel) ? few::receive(channel, message) : many::receive(channel, message);
}

void boost_dispose(struct peer_channel *channel)
{
	slab_free(channel);
}

struct peer describe()
{
	struct peer peer = {};

	peer.name = "boost spsc_queue";
	peer.how = "pointers into a slab, consumed in place";
	peer.sources = "libboost-dev";
	peer.readers_max = 1;
	peer.version = boost_version;
	peer.prepare = boost_prepare;
	peer.open = boost_open;
	peer.send = boost_send;
	peer.receive = boost_receive;
	peer.dispose = boost_dispose;
	return peer;
}

} // namespace

const struct peer peer_boost = describe();
