//! Sums over the records of all outstanding segments, by what became of them.

use super::Serial;
use super::record::{LOST, RESENT, Record, SACKED};
use crate::delivery::Sampler;
use crate::segment::SackBlocks;

/// Who hears of a loss, and the serial of the first record.
pub(super) type Told<'a> = (&'a mut Option<Box<Sampler>>, Serial);

/// How much some records are together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) records: u32,
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, record: &Record) {
        self.bytes += u64::from(record.len);
        self.records += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, record: &Record) {
        self.bytes -= u64::from(record.len);
        self.records -= 1;
    }

    #[inline]
    fn remove_if(&mut self, is_in: bool, record: &Record) {
        self.bytes -= if is_in { u64::from(record.len) } else { 0 };
        self.records -= u32::from(is_in);
    }
}

/// Sums over the records by what became of them, and how far each search among them has come.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Scoreboard {
    pub(super) sacked: Sum,
    pub(super) lost: Sum,
    pub(super) resent: Sum,
    /// One past the serials of the three highest SACKed records, highest first; 0 where there are fewer.
    pub(super) highest_sacked: [Serial; 3],
    /// Records before this one were examined for loss.
    pub(super) examined: Serial,
    /// Records before this one are overtaken, or are not out for the first time; the last of them that waits was this.
    pub(super) overtaken: Serial,
    pub(super) waits: Serial,
    /// No record before this one waits to be sent again.
    pub(super) resend_from: Serial,
    /// The blocks that the last acknowledgement reported, which need no second look.
    pub(super) walked: [(u64, u64); SackBlocks::MOST],
    /// Segments ever deemed lost.
    pub(super) ever_lost: u64,
    /// What is thought to have arrived, although nobody knows of which records.
    pub(super) assumed: Sum,
    /// From this sequence number on, records were sent once, and nothing more is known of them.
    pub(super) plain_from: u64,
}

base::left_whole!(Scoreboard);

impl Scoreboard {
    /// Takes a record out of the sums when it is acknowledged or reported.
    #[inline]
    pub(super) fn forget(&mut self, record: &Record) {
        self.sacked.remove_if(record.is(SACKED), record);
        self.lost.remove_if(record.is(LOST), record);
        self.resent.remove_if(record.is(RESENT), record);
    }

    /// Deems the record with this serial lost unless it was reported, so that it is sent again.
    pub(super) fn lose(&mut self, record: &mut Record, serial: Serial, told: Told<'_>) {
        if record.is(SACKED) {
            return;
        }
        if !record.is(LOST) {
            record.state |= LOST;
            self.touch(record);
            self.lost.add(record);
            self.lose_more(record, serial, told);
        }
        if !record.is(RESENT) {
            self.resend_from = self.resend_from.min(serial);
        }
    }

    /// Counts a transmission of the record that is deemed lost.
    pub(super) fn lose_more(&mut self, record: &Record, serial: Serial, told: Told<'_>) {
        self.ever_lost += 1;
        if let (Some(sampler), first) = told {
            sampler.lose((serial - first) as usize, record.seq, record.end());
        }
    }

    /// Notes that more is known of the record than that it was sent.
    #[inline]
    pub(super) fn touch(&mut self, record: &Record) {
        self.plain_from = self.plain_from.max(record.end());
    }

    /// Stops counting a record as sent again.
    pub(super) fn unsend(&mut self, record: &mut Record) {
        if record.is(RESENT) {
            record.state &= !RESENT;
            self.resent.remove(record);
        }
    }
}
