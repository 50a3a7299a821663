# Long TCP flows over one bottleneck, in ns-2.35; the counterpart of bulk.toml.
#
#   ns ns2_bulk.tcl aqm=DropTail|RED|PI|REM|SFQ|DRR|dsRED key=value ...        prints one line of JSON
#
# Flow i belongs to pair i mod pairs and starts at a time uniform from 0 to `start` seconds. cc is Sack1 or Newreno. One ACK a
# packet, or, with delack=1, one for two.
source [file join [file dirname [info script]] ns2_dumbbell.tcl]
options {flows 100 start 1.0 delack 0 cc Sack1} $argv
set starts [prepare]
set pairs [expr {min($o(pairs), $o(flows))}]
dumbbell $pairs

set tcps {}
for {set i 0} {$i < $o(flows)} {incr i} {
    set k [expr {$i % $pairs}]
    set tcp [new Agent/TCP/$o(cc)]
    set sink [new Agent/TCPSink[expr {$o(cc) eq "Sack1" ? "/Sack1" : ""}][expr {$o(delack) ? "/DelAck" : ""}]]
    $tcp set fid_ $i
    $ns attach-agent $sender($k) $tcp
    $ns attach-agent $receiver($k) $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [$starts uniform 0 $o(start)] "$ftp start"
    lappend tcps $tcp
}

proc totals {} {
    global tcps
    set r [dict create timeouts 0 retransmits 0 acked 0]
    foreach t $tcps {
        dict incr r timeouts [$t set nrexmit_]
        dict incr r retransmits [$t set nrexmitpack_]
        dict incr r acked [$t set ack_]
    }
    return $r
}

proc derived {d span} {
    global o
    return [list flows $o(flows) timeouts [dict get $d timeouts] retransmits [dict get $d retransmits] \
        goodput_bps [expr {[dict get $d acked] * 8.0 * ($o(pkt) - 40) / $span}]]
}
measure bulk totals derived
