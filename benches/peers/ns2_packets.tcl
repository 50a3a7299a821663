# One TCP flow whose packets are lost and marked by number, in ns-2.35; ns2_packets.py has the cases.
#
#   ns ns2_packets.tcl cc=Sack1 window=20 ... lost="30 31" marked="40" acks="7"      prints a line a packet: when, and which
#
# `lost` and `marked` count the packets of the sender from 0 as they are sent, new or again, `acks` (which are lost) those of the
# receiver. Links take next to no time for a packet, so that what belongs to one instant is sent within microseconds. There is no
# packet that opens the connection; the first one with data is not ECN-capable. Times count from the first packet, which leaves half a
# millisecond after a tick: an agent draws where its ticks begin (boot_time_).
array set o {cc Sack1 window 20 initial 2 segments 100000 lost {} marked {} acks {} delay 47 duration 6}
foreach word $argv { regexp {^(\w+)=(.*)$} $word - key value; set o($key) $value }

set ns [new Simulator]
foreach {key value} [list packetSize_ 1000 syn_ false delay_growth_ false ecn_ 1 windowInit_ $o(initial) \
    window_ $o(window)] { Agent/TCP set $key $value }
foreach name {sender near far receiver} { set $name [$ns node] }
proc link {from to delay} {
    global ns
    $ns simplex-link $from $to 1000000Mb ${delay}ms DropTail
    $ns queue-limit $from $to 1000000
}
link $sender $near $o(delay)
link $near $far 0
link $far $receiver 0
link $receiver $far $o(delay)
link $far $near 0
link $near $sender 0

proc by_number {numbers marks} {
    set model [new ErrorModel/List]
    $model unit pkt
    $model droplist $numbers
    $model set markecn_ $marks
    return $model
}
if {[llength $o(lost)]} { $ns lossmodel [by_number $o(lost) false] $near $far }
if {[llength $o(marked)]} { [$ns link $near $far] errormodule [by_number $o(marked) true] }
if {[llength $o(acks)]} { $ns lossmodel [by_number $o(acks) false] $far $near }

$defaultRNG seed 1
foreach draw {first second} { set boot [$defaultRNG uniform 0 0.01] }
$defaultRNG seed 1
set tcp [new Agent/TCP/$o(cc)]
set sink [new Agent/TCPSink[expr {$o(cc) eq "Sack1" ? "/Sack1" : ""}]]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set start [expr {0.0105 - $boot}]
set trace [open "|grep ^+ | awk {{printf \"%.6f %d\\n\", \$2 - $start, \$11}}" w]
$ns trace-queue $sender $near $trace
$ns at $start "$tcp advance $o(segments)"
$ns at [expr {$start + $o(duration)}] "$ns flush-trace; close $trace; exit 0"
$ns run
