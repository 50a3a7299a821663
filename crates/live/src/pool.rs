//! A [`Pool`] has buffers for packets, which are used again and again.

/// Longest packet that fits a buffer, in bytes. What is longer is cut on reading and so [`crate::wire::Malformed`].
pub const BUFFER: usize = 2048;
/// Buffers that are made at a time.
const CHUNK: usize = 256;
/// Most buffers there are: 512 MiB. 150,000 packets/s for a second and a half.
const MOST: usize = 1 << 18;

/// Buffers of [`BUFFER`] bytes, each known by its place.
#[derive(Default)]
pub struct Pool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Pool {
    /// A place that nobody holds; `None` when all there may be are held.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() && self.chunks.len() * CHUNK < MOST {
            let first = (self.chunks.len() * CHUNK) as u32;
            self.chunks.push(vec![0; CHUNK * BUFFER].into_boxed_slice());
            self.free.reserve(self.chunks.len() * CHUNK);
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        self.free.pop()
    }

    /// Gives `place` back.
    #[inline]
    pub fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The buffer at `place`.
    #[inline]
    pub fn buffer(&self, place: u32) -> &[u8] {
        let (chunk, within) = (place as usize / CHUNK, place as usize % CHUNK);
        &self.chunks[chunk][within * BUFFER..(within + 1) * BUFFER]
    }

    /// The buffer at `place`, to be written.
    #[inline]
    pub fn buffer_mut(&mut self, place: u32) -> &mut [u8] {
        let (chunk, within) = (place as usize / CHUNK, place as usize % CHUNK);
        &mut self.chunks[chunk][within * BUFFER..(within + 1) * BUFFER]
    }

    /// How many are held.
    pub fn held(&self) -> usize {
        self.chunks.len() * CHUNK - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_distinct_and_come_back() {
        let mut pool = Pool::default();
        let places: Vec<u32> = (0..1000).map(|_| pool.take().expect("there is room")).collect();
        for (index, &place) in places.iter().enumerate() {
            pool.buffer_mut(place)[..4].copy_from_slice(&(index as u32).to_be_bytes());
        }
        for (index, &place) in places.iter().enumerate() {
            assert_eq!(pool.buffer(place)[..4], (index as u32).to_be_bytes());
        }
        assert_eq!(pool.held(), 1000);
        places.iter().for_each(|&place| pool.give_back(place));
        assert_eq!(pool.held(), 0);
        assert!((0..1000).all(|_| pool.take().is_some()));
        assert_eq!(pool.chunks.len(), 4, "1000 buffers are four chunks, the second time too");
    }
}
