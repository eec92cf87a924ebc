"""The ways of native code to get a byte past the network boundary: a row each. The functions stand in native/*.c.

Run bare a way reaches its aim (the negative control); in a sandbox whose profile allows other ports it does not; and its
*twin*, the same function or the plainest one of its kind, aimed at a port that a rule allows, works there as it does bare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal


@dataclass(frozen=True)
class Way:
    name: str
    """The function."""
    aim: Literal["out", "in", "made"]
    """``out``: its token arrives at a listener that no rule names. ``in``: a byte from outside comes in. ``made``: a thing
    that nobody should hold (a socket of another family, a namespace) can be had; told by the function itself."""
    twin: str = ""
    """The function that has to work by a rule; "" is the way itself."""
    grants: str = ""
    """Profile lines beyond the native grant. Ways of the same grants share a process."""
    alone: bool = False
    """In a process of its own: it may end it."""
    datagrams: bool = False
    """What it sends are datagrams of UDP."""
    gaps: dict[str, str] = field(default_factory=dict)
    """mode -> why it goes through nevertheless; SECURITY.md says so, too."""


PROCESSES = "python-api=ALLOW:process-exec\nexpose-ro=./program\n"

out = partial(Way, aim="out")
udp = partial(Way, aim="out", datagrams=True)
made = partial(Way, aim="made", twin="connect_v4")
come_in = partial(Way, aim="in")

WAYS = [
    # ---- TCP out
    out("connect_v4"),
    out("connect_v6"),
    out("connect_mapped"),
    out("connect_scoped"),
    out("connect_unspecified"),
    out("connect_unspecified_v6"),
    out("connect_unspecified_mapped", twin="connect_unspecified"),
    out("connect_other_loopback"),
    out("connect_other_host_of_a_granted_port"),
    out("connect_other_host_mapped"),
    out("connect_spelled"),
    out("connect_by_syscall"),
    out("connect_long_address"),
    out("connect_high_bits"),
    out("connect_at_the_end_of_a_page"),
    out("connect_read_only_address"),
    out("connect_after_odd_addresses"),
    out("connect_unspec_first", twin="connect_v4"),
    out("connect_granted_then_elsewhere", twin="connect_v4"),
    out("connect_granted_then_elsewhere_v6", twin="connect_v6"),
    out("connect_addrform_then_elsewhere", twin="connect_mapped"),
    out("connect_after_a_refused_one"),
    out("connect_twice_without_waiting"),
    out("connect_nonblocking"),
    out("connect_bound_before", twin="connect_v4"),
    out("connect_in_a_thread"),
    out("connect_by_a_copy"),
    out("connect_in_epoll"),
    out("connect_bound_to_a_device"),
    out("connect_transparent"),
    out("connect_marked"),
    out("connect_without_a_port"),
    out("connect_reusing"),
    out("connect_from_a_foreign_address", twin="connect_v4"),
    out("connect_flow_label"),
    out("fastopen_sendto", twin="connect_v4"),
    out("fastopen_sendmsg", twin="connect_v4"),
    out("fastopen_sendmmsg", twin="connect_v6"),
    out("fastopen_deferred", twin="connect_v4"),
    out("splice_into"),
    out("sendfile_into"),
    out("connect_two_hundred"),
    out("connect_without_descriptors"),
    out("mptcp_connect", twin="connect_v4"),
    # ---- UDP out
    udp("udp_sendto"),
    udp("udp_sendto_v6"),
    udp("udp_sendto_mapped"),
    udp("udp_sendto_other_host"),
    udp("udp_v6_socket_v4_address"),
    udp("udp_v6_socket_v4_connect"),
    udp("udp_sendto_no_family", twin="udp_sendto"),
    udp("udp_sendmsg_no_family", twin="udp_sendmsg"),
    udp("udp_sendto_flags"),
    udp("udp_sendto_unspecified"),
    udp("udp_sendmsg"),
    udp("udp_sendmsg_v6"),
    udp("udp_sendmsg_pktinfo"),
    udp("udp_sendmmsg_second"),
    udp("udp_sendmmsg_connected"),
    udp("udp_connect_send"),
    udp("udp_connect_write"),
    udp("udp_granted_then_sendto_elsewhere"),
    udp("udp_granted_then_sendmsg_elsewhere"),
    udp("udp_granted_then_connect_elsewhere"),
    udp("udp_unspec_then_sendto", twin="udp_sendto"),
    udp("udp_corked", twin="udp_sendto"),
    udp("udp_segmented"),
    udp("udp_in_segments"),
    udp("udp_in_segments_v6"),
    udp("udp_broadcast", twin="udp_sendto"),
    udp("udp_multicast", twin="udp_sendto"),
    udp("udp_bound_to_a_device"),
    udp("udp_descriptor_sent_to_oneself"),
    out("raw_packet", twin="udp_sendto"),
    out("link_packet", twin="udp_sendto"),
    # ---- in
    come_in("listen_v4"),
    come_in("listen_everywhere"),
    come_in("listen_no_family", twin="listen_everywhere"),
    come_in("listen_v6"),
    come_in("listen_dual_stack"),
    come_in("listen_mapped"),
    come_in("listen_without_bind", twin="listen_v4"),
    come_in("listen_without_bind_v6", twin="listen_v6"),
    come_in("listen_after_a_refused_connect", twin="listen_v4"),
    come_in("listen_after_a_connection", twin="listen_v4"),
    come_in("steal_by_reuseport", twin="listen_v4"),
    come_in("steal_by_reuseaddr", twin="udp_bind"),
    come_in("listen_abstract", twin="listen_v4"),
    come_in("listen_abstract_packets", twin="listen_v4"),
    come_in("listen_abstract_unnamed", twin="listen_v4"),
    come_in("udp_bind"),
    come_in("udp_bind_v6"),
    come_in("udp_answer_from_a_stranger", twin="udp_bind"),
    come_in("udp_multicast_member", twin="udp_bind"),
    # ---- detours
    out("ended_then_connect", twin="connect_v4"),
    out("ended_then_fastopen", twin="connect_v4"),
    out("ended_then_fastopen_by_sendto", twin="connect_v4"),
    out("ended_then_deferred", twin="connect_v4"),
    come_in("ended_then_listen", twin="listen_v4"),
    come_in("ended_then_bind", twin="listen_v4"),
    made("source_route"),
    made("source_route_of_a_connection"),
    made("source_route_of_a_datagram", twin="udp_sendmsg_pktinfo"),
    made("routing_header", twin="connect_v6"),
    made("device_by_name"),
    made("device_by_number"),
    made("device_of_unicast"),
    made("device_of_unicast_v6", twin="connect_v6"),
    made("device_of_a_source_v6", twin="connect_v6"),
    # ---- beside the socket calls
    made("every_other_family"),
    made("every_other_protocol"),
    made("every_other_netlink"),
    made("netlink_change"),
    made("netlink_change_without_address"),
    made("netlink_change_by_sendmsg"),
    made("netlink_change_by_sendmsg_without_address"),
    made("netlink_change_by_sendmmsg"),
    made("netlink_change_behind_a_question"),
    made("socketpair_of_another_family"),
    made("packet_family_with_high_bits"),
    out("socketpair_of_the_internet", twin="udp_sendto"),
    out("ring_connect", twin="connect_v4"),
    out("ring_sendmsg", twin="udp_sendmsg"),
    made("new_network"),
    made("new_network_by_clone3"),
    out("network_of_the_parent", twin="connect_v4"),
    out("network_of_another", twin="connect_v4"),
    out("network_of_a_pidfd", twin="connect_v4"),
    made("ptrace_of_another"),
    out("descriptor_of_another", twin="connect_v4"),
    made("descriptor_of_the_parent"),
    out("inherited_descriptors", twin="connect_v4"),
    made("tcp_repair"),
    out("x32_socket", twin="connect_v4", alone=True),
    out("i386_socket", twin="connect_v4", alone=True),
    # ---- local sockets
    out("local_path"),
    out("local_in_an_exposed_folder"),
    out("local_abstract", twin="local_path"),
    out("local_moved", twin="local_beside_others"),
    out("local_linked", twin="local_beside_others"),
    out("local_datagram_moved", twin="local_datagram"),
    out("local_by_root_link", twin="local_path"),
    out("local_without_zero"),
    out("local_datagram"),
    out("local_datagram_of_a_pair", twin="local_datagram"),
    out("local_datagram_of_a_pair_connected", twin="local_datagram"),
    # ---- races and storms
    out("race_connect_port"),
    out("race_connect_family", twin="connect_v4"),
    udp("race_udp_connect"),
    udp("race_sendto_port"),
    udp("race_sendmsg_name"),
    udp("race_sendmsg_length", twin="udp_sendmsg"),
    udp("race_sendmsg_parts"),
    udp("race_sendmmsg_name"),
    udp("race_descriptor_sendmsg", twin="udp_sendmsg"),
    udp("race_descriptor_connect", twin="udp_connect_send"),
    udp("race_descriptor_sendto", twin="udp_sendto"),
    out("storm_of_signals"),
    out("storm_of_restarting_signals"),
    udp("storm_of_signals_udp"),
    # ---- processes, by a grant
    out("forked", grants=PROCESSES),
    udp("forked_without_the_library", grants=PROCESSES),
    out("vforked", grants=PROCESSES),
    out("cloned_with_memory", grants=PROCESSES),
    out("daemonised", grants=PROCESSES),
    udp("connected_by_a_child", grants=PROCESSES),
    out("fork_storm", grants=PROCESSES),
    out("executed", grants=PROCESSES),
    udp("spawned", grants=PROCESSES),
]
BY_NAME = {way.name: way for way in WAYS} | {"local_beside_others": out("local_beside_others")}
