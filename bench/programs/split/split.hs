-- Likewise.
module Main where
import Data.Bits
import Data.IORef
import Data.Time.Clock
import System.Environment
spin :: Int -> Int -> Int
spin 0 x = x
spin n x = spin (n - 1) ((x * 1664525 + 1013904223) .&. 0xffffffff)
{-# INLINE spin #-}
sixty, thirty, ten :: Int -> Int
sixty x = go 12000000 x where { go :: Int -> Int -> Int; go 0 y = y; go n y = go (n - 1) ((y * 1664525 + 1013904223) .&. 0xffffffff) }
thirty x = go 6000000 x where { go :: Int -> Int -> Int; go 0 y = y + 1; go n y = go (n - 1) ((y * 1664525 + 1013904223) .&. 0xffffffff) }
ten x = go 2000000 x where { go :: Int -> Int -> Int; go 0 y = y + 2; go n y = go (n - 1) ((y * 1664525 + 1013904223) .&. 0xffffffff) }
{-# NOINLINE sixty #-}
{-# NOINLINE thirty #-}
{-# NOINLINE ten #-}
main :: IO ()
main = do
  [word] <- getArgs
  begin <- getCurrentTime
  let loop x = do
        now <- getCurrentTime
        if diffUTCTime now begin > fromIntegral (read word :: Int) then return x else do { let { y = ten (thirty (sixty x)) }; y `seq` loop y }
  x <- loop 1
  if x == 7 then print x else return ()
